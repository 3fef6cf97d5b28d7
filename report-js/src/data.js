// Data of a page: columns as JSON, compressed by gzip, in base64.

export async function readData(node) {
  const bytes = decoded(node.textContent.trim());
  node.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function decoded(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Small signed integers in base64, such as correlations in hundredths.
export function int8(text) {
  return new Int8Array(decoded(text).buffer);
}
