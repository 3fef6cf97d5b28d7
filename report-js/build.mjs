// Bundles the sources into the package: script, style, licences, and a digest of all sources.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "src", "coterie", "report", "assets");
mkdirSync(assets, { recursive: true });

const common = {
  bundle: true,
  minify: true,
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
  write: false,
  metafile: true,
};
const script = await build({
  ...common,
  entryPoints: [join(here, "src/main.js")],
  format: "iife",
  target: ["es2022"],
});
const style = await build({
  ...common,
  entryPoints: [join(here, "src/report.css")],
  target: ["chrome110", "firefox113", "safari16.4"],
});
// A script ends where the page's parser sees its closing tag, whatever stands around it.
const text = script.outputFiles[0].text.replaceAll("</script", "<\\/script").trim();
writeFileSync(join(assets, "report.js"), text + "\n");
writeFileSync(join(assets, "report.css"), style.outputFiles[0].text.trim() + "\n");

const used = [
  ...new Set(
    Object.keys(script.metafile.inputs)
      .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1])
      .filter(Boolean),
  ),
].sort();
const licences = used.map((name) => {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const terms = readFileSync(join(folder, "LICENSE"), "utf8").trim();
  return `${name} ${version} (${license})\n\n${terms}\n`;
});
writeFileSync(
  join(assets, "LICENSES.txt"),
  "report.js contains parts of the following packages.\n\n" +
    licences.join("\n" + "-".repeat(80) + "\n\n"),
);

function files(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? files(join(folder, entry.name)) : [join(folder, entry.name)],
  );
}

const sources = [
  ...files(join(here, "src")),
  ...["build.mjs", "eslint.config.js", "package.json", "package-lock.json"].map((name) =>
    join(here, name),
  ),
];
const digests = Object.fromEntries(
  sources
    .map((path) => [relative(here, path).replaceAll("\\", "/"), sha256(readFileSync(path))])
    .sort(),
);
const bundle = Object.fromEntries(
  ["report.js", "report.css", "LICENSES.txt"].map((name) => [
    name,
    sha256(readFileSync(join(assets, name))),
  ]),
);
writeFileSync(
  join(assets, "manifest.json"),
  JSON.stringify({ sources: digests, bundle }, null, 2) + "\n",
);
console.log(
  Object.keys(bundle)
    .map(
      (name) => `${name} ${readFileSync(join(assets, name)).length.toLocaleString("en-US")} bytes`,
    )
    .join(", "),
);

function sha256(content) {
  return createHash("sha256").update(content).digest("hex");
}
