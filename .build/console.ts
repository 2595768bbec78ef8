// Builds the console's page, minified, so that an operator's machine needs no build tool.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { readFile } from "node:fs/promises";
import { bundlePage } from "../plugins/observers/console/bundle.ts";

const WEB = new URL("../plugins/observers/console/web/", import.meta.url);

/**
 * Maximum gzipped size, in bytes, of the files that a browser loads before the first page appears.
 */
const MOST_BYTES = 120_000;

export async function pages(into: string): Promise<void> {
  const html = await readFile(new URL("index.html", WEB), "utf8");
  const { js, css } = await bundlePage(WEB, html);
  mkdirSync(into, { recursive: true });
  writeFileSync(join(into, "index.html"), html);
  let bytes = html.length;
  for (const [name, { plain }] of [
    ["app.js", js],
    ["app.css", css],
  ] as const) {
    const gz = gzipSync(plain, { level: 9 });
    const params = { [constants.BROTLI_PARAM_QUALITY]: 11 };
    bytes += gz.length;
    writeFileSync(join(into, name), plain);
    writeFileSync(join(into, `${name}.gz`), gz);
    writeFileSync(join(into, `${name}.br`), brotliCompressSync(plain, { params }));
  }
  if (bytes > MOST_BYTES)
    throw new Error(`The console is ${bytes} bytes with gzip. The limit is ${MOST_BYTES} bytes.`);
  console.log(`console: ${Math.ceil(bytes / 1_000)} kB with gzip`);
}
