// Reads the console's files from the output of `npm run build`, or bundles them from source in a
// checkout.
import { readFile } from "node:fs/promises";
import { fail } from "tollgate/plugin";
import { bundlePage, type PageFile, type PageFiles } from "./bundle.ts";

const SOURCE_FOLDER = new URL("web/", import.meta.url);
/** Locations relative to the bundled program and relative to this module when it is not bundled. */
const BUILD_FOLDERS = ["../../console/", "../../../console/"].map(
  (path) => new URL(path, import.meta.url),
);

const tryReadFile = (from: URL, name: string): Promise<Buffer | undefined> =>
  readFile(new URL(name, from)).catch(() => undefined);

export async function readPageFiles(): Promise<PageFiles> {
  const source = await tryReadFile(SOURCE_FOLDER, "index.html");
  if (source && import.meta.filename.endsWith(".ts"))
    return bundlePage(SOURCE_FOLDER, source.toString()).catch((cause: unknown) =>
      fail(
        "unavailable",
        "Cannot build the console because its build dependencies are missing. Run `npm ci`.",
        {
          code: "no_bundler",
          cause,
        },
      ),
    );
  for (const from of BUILD_FOLDERS) {
    const html = await tryReadFile(from, "index.html");
    const [js, css] = await Promise.all(
      ["app.js", "app.css"].map((name) => readPageFile(from, name)),
    );
    if (html && js && css) return { html: html.toString(), js, css };
  }
  return fail("internal", "This build does not include the console.", { code: "no_console" });
}

async function readPageFile(from: URL, name: string): Promise<PageFile | undefined> {
  const [plain, gz, br] = await Promise.all(
    ["", ".gz", ".br"].map((end) => tryReadFile(from, name + end)),
  );
  return plain && { plain, gz, br };
}
