// Where the page's parts come from: from the folder that `npm run build` has made, or, in a checkout, from source.
import { readFile } from "node:fs/promises";
import { fail } from "tollgate/plugin";
import { built } from "./bundling.ts";

/** One file; `gz` and `br`: packed by the build. */
export interface Part {
  readonly plain: Buffer;
  readonly gz?: Buffer | undefined;
  readonly br?: Buffer | undefined;
}

export interface Parts {
  readonly html: string;
  readonly js: Part;
  readonly css: Part;
}

const WEB = new URL("web/", import.meta.url);
/** As seen from the program in few files, and from this one by itself. */
const BUILT = ["../../console/", "../../../console/"].map((path) => new URL(path, import.meta.url));

const read = (from: URL, name: string): Promise<Buffer | undefined> =>
  readFile(new URL(name, from)).catch(() => undefined);

export async function readParts(): Promise<Parts> {
  const source = await read(WEB, "index.html");
  if (source && import.meta.filename.endsWith(".ts"))
    return built(WEB, source.toString()).catch((cause: unknown) =>
      fail(
        "unavailable",
        "The console cannot be built here. `npm ci` brings what it is made with.",
        {
          code: "no_bundler",
          cause,
        },
      ),
    );
  for (const from of BUILT) {
    const html = await read(from, "index.html");
    const [js, css] = await Promise.all(["app.js", "app.css"].map((name) => part(from, name)));
    if (html && js && css) return { html: html.toString(), js, css };
  }
  return fail("internal", "This build has no console in it.", { code: "no_console" });
}

async function part(from: URL, name: string): Promise<Part | undefined> {
  const [plain, gz, br] = await Promise.all(
    ["", ".gz", ".br"].map((end) => read(from, name + end)),
  );
  return plain && { plain, gz, br };
}
