// Serves the console: one HTML page for every view, and its script and style sheet under names that
// contain a content hash.
import { createHash } from "node:crypto";
import { constants, brotliCompressSync, gzipSync } from "node:zlib";
import { type RequestHead, type Context, fail, type RouteResponse } from "tollgate/plugin";
import { type PageFiles, bundlePage, type PageFile } from "./bundle.ts";
import { readFile } from "node:fs/promises";

/**
 * Allows no scripts, styles, images, or requests from other origins, no script from text, and no
 * framing.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "media-src data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const SECURITY_HEADERS = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "x-frame-options": "DENY",
};

interface Asset {
  readonly type: string;
  readonly plain: Buffer;
  readonly gz: Buffer;
  readonly br: Buffer;
}

interface Pages {
  readonly html: Buffer;
  readonly assets: ReadonlyMap<string, Asset>;
}

/**
 * Responds to all requests below `base`. The files are read, or bundled from source, on the first
 * request.
 */
export function createPageServer(base: string, ctx: Pick<Context, "shared">) {
  const kept = ctx.shared("pages", () => ({ made: undefined as Promise<Pages> | undefined }));
  return async (x: RequestHead): Promise<RouteResponse> => {
    kept.made ??= readPageFiles().then((parts) => buildPages(base, parts));
    const pages = await kept.made.catch((problem: unknown) => {
      kept.made = undefined;
      throw problem;
    });
    const rest = x.params["rest"] ?? "";
    if (!rest.startsWith("assets/"))
      return {
        status: 200,
        headers: {
          ...SECURITY_HEADERS,
          "content-type": "text/html; charset=utf-8",
          "cache-control": "no-store",
        },
        body: pages.html,
      };
    const asset = pages.assets.get(rest.slice("assets/".length));
    if (!asset) return fail("not_found", "File not found.", { code: "unknown_path" });
    return { status: 200, ...toResponse(asset, x.headers["accept-encoding"]) };
  };
}

function toResponse({ type, plain, gz, br }: Asset, acceptEncoding: string | string[] | undefined) {
  const takes = new Set(
    `${acceptEncoding ?? ""}`.split(",").map((each) => each.split(";")[0]!.trim()),
  );
  const coding = takes.has("br") ? "br" : takes.has("gzip") ? "gzip" : undefined;
  return {
    headers: {
      ...SECURITY_HEADERS,
      "content-type": type,
      // The name changes with the content, so the file may be cached forever.
      "cache-control": "public, max-age=31536000, immutable",
      vary: "accept-encoding",
      ...(coding && { "content-encoding": coding }),
    },
    body: coding === "br" ? br : coding === "gzip" ? gz : plain,
  };
}

function buildPages(base: string, { html, js, css }: PageFiles): Pages {
  const assets = new Map<string, Asset>();
  const add = (kind: string, type: string, part: PageFiles["js"]): string => {
    const name = `app.${createHash("sha256").update(part.plain).digest("hex").slice(0, 12)}.${kind}`;
    assets.set(name, { type, ...compress(part) });
    return `${base}/assets/${name}`;
  };
  const text = html
    .replace("{js}", add("js", "text/javascript; charset=utf-8", js))
    .replace("{css}", add("css", "text/css; charset=utf-8", css));
  return { html: Buffer.from(text), assets };
}

/** Uses the compressed versions of the build if they exist. */
const compress = ({ plain, gz, br }: PageFiles["js"]) => ({
  plain,
  gz: gz ?? gzipSync(plain),
  br: br ?? brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
});

// Reads the console's files from the output of `npm run build`, or bundles them from source in a
// checkout.

const SOURCE_FOLDER = new URL("web/", import.meta.url);
/** Locations relative to the bundled program and relative to this module when it is not bundled. */
const BUILD_FOLDERS = ["../../console/", "../../../console/"].map(
  (path) => new URL(path, import.meta.url),
);

const tryReadFile = (from: URL, name: string): Promise<Buffer | undefined> =>
  readFile(new URL(name, from)).catch(() => undefined);

async function readPageFiles(): Promise<PageFiles> {
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
