// Bundles src/ into dist/, the two files that the report crate compiles in. The same sources and lockfile give the
// same bytes.
import { build } from "esbuild";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";

const common = {
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "none",
  target: "es2022",
  write: false,
};
const script = await build({ ...common, entryPoints: ["src/main.ts"], format: "iife", metafile: true });
const style = await build({ ...common, entryPoints: ["src/report.css"] });

mkdirSync("dist", { recursive: true });
writeFileSync("dist/report.js", notices(script.metafile) + script.outputFiles[0].text);
writeFileSync("dist/report.css", style.outputFiles[0].text);

/** The notices that the licences of the bundled packages ask every copy to carry, each text once. */
function notices(metafile) {
  const [output] = Object.values(metafile.outputs);
  const used = Object.entries(output.inputs).filter(([, input]) => input.bytesInOutput > 0);
  const folders = new Set(used.flatMap(([path]) => path.match(/^node_modules\/(?:@[^/]+\/)?[^/]+/) ?? []));
  const byText = new Map();
  for (const folder of [...folders].sort()) {
    const file = readdirSync(folder).find((name) => /^licen[sc]e/i.test(name));
    if (!file) throw new Error(`${folder} is bundled and has no licence file`);
    const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const text = readFileSync(`${folder}/${file}`, "utf8")
      .trim()
      .replaceAll("\r", "")
      .replaceAll("*/", "* /");
    byText.set(text, [...(byText.get(text) ?? []), `${name} ${version}`]);
  }
  const parts = [...byText].map(([text, names]) => `${names.join(", ")}\n\n${text}`);
  return `/*! This file holds parts of the packages below.\n\n${parts.join("\n\n---\n\n")}\n*/\n`;
}
