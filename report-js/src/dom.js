// Elements are built without markup: text is inserted as text nodes, so names from the data cannot
// inject HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style")
      for (const [key, css] of Object.entries(value)) node.style.setProperty(key, css);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false),
  );
  return node;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

// A figure with title and caption. `draw(width)` returns an SVG node and is
// called again when the width changes.
export function figure({ title, caption, wide = false, className = "", draw, controls }) {
  const frame = h("div", { class: "canvas" });
  const node = h(
    "figure",
    { class: `figure ${wide ? "wide" : ""} ${className}` },
    h("h3", {}, title),
    controls,
    frame,
    caption ? h("figcaption", {}, caption) : null,
  );
  let drawn = 0;
  const redraw = () => {
    const width = Math.round(frame.clientWidth);
    if (!width) return;
    drawn = width;
    frame.replaceChildren(...[draw(width)].flat().filter(Boolean));
  };
  new ResizeObserver(() => {
    if (Math.abs(frame.clientWidth - drawn) > 1 && !matchMedia("print").matches) redraw();
  }).observe(frame);
  return { node, redraw };
}
