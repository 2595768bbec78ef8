// Downloads one file from a URL that a client or an upstream server provided. It sends a GET
// request without credentials, and limits redirects, bytes, and time. Every hop passes the egress
// guard, unless its origin was configured by the operator.
import { Agent } from "undici";
import { createEgressGuard, type EgressGuard } from "../../lib/net/egress-guard.ts";
import { fail, getFault } from "../../model/error.ts";

export interface DownloadLimits {
  maxBytes: number;
  deadlineMs: number;
  /** Maximum number of redirects. */
  hops: number;
}

export interface DownloadRequest extends Partial<DownloadLimits> {
  /** An origin that may be on a private network, because the operator configured it. */
  trustedOrigin?: string | undefined;
}

export interface DownloadedFile {
  bytes: Buffer;
  /** Content type from the server, without parameters. */
  contentType: string;
}

export interface Downloader extends AsyncDisposable {
  get(url: string | URL, signal?: AbortSignal, request?: DownloadRequest): Promise<DownloadedFile>;
}

const DEFAULT_LIMITS: DownloadLimits = { maxBytes: 32 * 1024 * 1024, deadlineMs: 30_000, hops: 3 };

export function createDownloader(through: EgressGuard = createEgressGuard()): Downloader {
  const pool = { connections: 16, keepAliveTimeout: 1_000 };
  const abroad = new Agent({ ...pool, connect: through.connect });
  const home = new Agent({ ...pool, connect: { timeout: 5_000 } });
  return {
    async get(url, signal, request) {
      const { maxBytes, deadlineMs, hops, trustedOrigin } = { ...DEFAULT_LIMITS, ...request };
      const deadline = AbortSignal.timeout(deadlineMs);
      const until = signal ? AbortSignal.any([signal, deadline]) : deadline;
      try {
        const way = (to: string | URL): DialTarget => {
          const at = URL.parse(String(to));
          return at && at.origin === trustedOrigin && !at.username && !at.password
            ? { url: at, dispatcher: home }
            : { url: through.check(to), dispatcher: abroad };
        };
        return await fetchFollowing(way, url, until, maxBytes, hops);
      } catch (error) {
        if (signal?.aborted) fail("canceled", "The client disconnected.", { cause: error });
        if (deadline.aborted)
          fail("timeout", `Downloading a file took longer than ${deadlineMs / 1000} s.`, {
            code: "download_timeout",
          });
        if (getFault(error)) throw error;
        const { code = "", message } = error as Error & { code?: string };
        if (code.startsWith("address_")) return fail("upstream", message, { code, cause: error });
        // Error messages of Node contain addresses.
        return fail("upstream", `Cannot download a file: ${code || "the connection broke"}.`, {
          code: "download_failed",
          cause: error,
        });
      }
    },
    [Symbol.asyncDispose]: async () => void (await Promise.all([abroad.close(), home.close()])),
  };
}

/** A URL that may be contacted, with the agent that connects to it. */
interface DialTarget {
  url: URL;
  dispatcher: Agent;
}

async function fetchFollowing(
  resolveTarget: (to: string | URL) => DialTarget,
  from: string | URL,
  signal: AbortSignal,
  maxBytes: number,
  hops: number,
): Promise<DownloadedFile> {
  let to = resolveTarget(from);
  for (let hop = 0; ; hop++) {
    const { url, dispatcher } = to;
    const answer = await dispatcher.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: "GET",
      signal,
      // Compressed bytes would have to be counted twice, and images hardly become smaller by
      // compression.
      headers: { accept: "*/*", "accept-encoding": "identity" },
    });
    const { statusCode: status, headers, body } = answer;
    // A discarded body emits an error that nothing else listens for.
    body.on("error", () => {});
    if (status === 200) {
      const mime = String(headers["content-type"] ?? "").split(";", 1)[0]!;
      return {
        bytes: await readLimited(body, Number(headers["content-length"]), maxBytes),
        contentType: mime,
      };
    }
    body.destroy();
    const next = headers["location"];
    if (status < 300 || status > 399 || typeof next !== "string")
      fail("upstream", `${url.origin} returned status ${status} for the download of a file.`, {
        code: "download_failed",
      });
    if (hop >= hops)
      fail("upstream", `${url.origin} redirected more than ${hops} times.`, {
        code: "download_failed",
      });
    to = resolveTarget(URL.parse(String(next), url.href) ?? String(next));
  }
}

async function readLimited(
  body: AsyncIterable<Buffer> & { destroy(): unknown },
  announced: number,
  maxBytes: number,
): Promise<Buffer> {
  const tooLarge = (): never => {
    body.destroy();
    return fail("upstream", `A file is larger than ${maxBytes} bytes.`, {
      code: "download_too_large",
    });
  };
  if (announced > maxBytes) tooLarge();
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > maxBytes) tooLarge();
    parts.push(part);
  }
  return Buffer.concat(parts, size);
}
