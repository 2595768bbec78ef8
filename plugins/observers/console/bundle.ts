// Bundles the console's modules and their imports into one script and one style sheet.
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** A file of the console. `gz` and `br` are compressed versions from the build. */
export interface PageFile {
  readonly plain: Buffer;
  readonly gz?: Buffer | undefined;
  readonly br?: Buffer | undefined;
}

export interface PageFiles {
  readonly html: string;
  readonly js: PageFile;
  readonly css: PageFile;
}

/**
 * Bundles the console. `web` is the folder of its source. Rejects without rolldown, which only a
 * source checkout has.
 */
export async function bundlePage(web: URL, html: string): Promise<PageFiles> {
  const { rolldown } = await import("rolldown");
  const bundle = await rolldown({
    input: fileURLToPath(new URL("main.ts", web)),
    platform: "browser",
  });
  const { output } = await bundle.generate({ format: "es", minify: true, codeSplitting: false });
  await bundle.close();
  const [script] = output;
  const resolve = createRequire(import.meta.url).resolve;
  const sheets = [resolve("uplot/dist/uPlot.min.css"), fileURLToPath(new URL("console.css", web))];
  const css = await Promise.all(sheets.map((path) => readFile(path)));
  return {
    html,
    js: { plain: Buffer.from(script.code) },
    css: { plain: minifyCss(Buffer.concat(css).toString()) },
  };
}

/** Removes comments and insignificant whitespace. */
const minifyCss = (css: string): Buffer =>
  Buffer.from(
    css
      .replace(/\/\*[\s\S]*?\*\//g, "")
      .replace(/\s*\n\s*/g, "")
      .replace(/\s*([{};,])\s*/g, "$1")
      .replace(/:\s+/g, ":"),
  );
