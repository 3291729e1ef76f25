// Bundles src/ into one HTML file that asks for nothing else: weft/viz/page.html.
// The page carries a hash of what it was built from, which a test compares with the sources.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const options = { bundle: true, minify: true, write: false, target: "es2021", jsx: "automatic", jsxImportSource: "preact", legalComments: "none" };
const text = async (entry, extra = {}) =>
  (await build({ ...options, ...extra, entryPoints: [entry] })).outputFiles[0].text;

const worker = await text("src/worker.js", { format: "iife" });
const script = await text("src/main.jsx", { format: "iife", define: { WORKER_SOURCE: JSON.stringify(worker) } });
const style = await text("src/style.css");
const hash = createHash("sha256");
for (const name of ["package.json", "build.js", ...readdirSync("src").sort().map((n) => `src/${n}`)])
  hash.update(name).update(readFileSync(name));

writeFileSync("../weft/viz/page.html", `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="built-from" content="${hash.digest("hex")}"><title>Weft</title>
<link rel="icon" href="data:,">
<style>${style}</style></head><body><div id="app"></div>
<!--TRACE-->
<script>${script.replaceAll("</script", "<\\/script")}</script></body></html>
`);
