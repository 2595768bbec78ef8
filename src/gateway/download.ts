// One file from an address that somebody else wrote: GET, no credentials, few hops, few bytes, little time, and every
// hop dialled through the egress guard.
import { Agent, request } from "undici";
import { guard, type Guard } from "../lib/egress.ts";
import { fail, faultOf } from "../model/error.ts";

export interface Limits {
  maxBytes: number;
  deadlineMs: number;
  /** Redirects that are followed. */
  hops: number;
}

export interface Downloaded {
  bytes: Buffer;
  /** As the server names it, without parameters. */
  mime: string;
}

export interface Downloads extends AsyncDisposable {
  get(url: string | URL, signal?: AbortSignal, limits?: Partial<Limits>): Promise<Downloaded>;
}

const LIMITS: Limits = { maxBytes: 32 * 1024 * 1024, deadlineMs: 30_000, hops: 3 };

export function downloads(through: Guard = guard()): Downloads {
  const agent = new Agent({ connect: through.connect, connections: 16, keepAliveTimeout: 1_000 });
  return {
    async get(url, signal, limits) {
      const { maxBytes, deadlineMs, hops } = { ...LIMITS, ...limits };
      const deadline = AbortSignal.timeout(deadlineMs);
      const until = signal ? AbortSignal.any([signal, deadline]) : deadline;
      try {
        return await fetched(agent, through, url, until, maxBytes, hops);
      } catch (error) {
        if (signal?.aborted) fail("canceled", "The client went away.", { cause: error });
        if (deadline.aborted)
          fail("timeout", `A file took longer than ${deadlineMs / 1000} s to arrive.`, {
            code: "download_timeout",
          });
        if (faultOf(error)) throw error;
        const { code, message } = error as Error & { code?: string };
        return fail("upstream", `A file could not be fetched: ${message}`, {
          code: code?.startsWith("address_") ? code : "download_failed",
          cause: error,
        });
      }
    },
    [Symbol.asyncDispose]: () => agent.close(),
  };
}

async function fetched(
  agent: Agent,
  through: Guard,
  from: string | URL,
  signal: AbortSignal,
  maxBytes: number,
  hops: number,
): Promise<Downloaded> {
  let url = through.check(from);
  for (let hop = 0; ; hop++) {
    const answer = await request(url, {
      dispatcher: agent,
      signal,
      // Compressed bytes would have to be counted twice; pictures do not shrink.
      headers: { accept: "*/*", "accept-encoding": "identity" },
    });
    const { statusCode: status, headers, body } = answer;
    // A body that is thrown away says so as an error; nobody else is listening.
    body.on("error", () => {});
    if (status === 200) {
      const mime = String(headers["content-type"] ?? "").split(";", 1)[0]!;
      return { bytes: await limited(body, Number(headers["content-length"]), maxBytes), mime };
    }
    body.destroy();
    const next = headers["location"];
    if (status < 300 || status > 399 || typeof next !== "string")
      fail("upstream", `${url.origin} answered ${status} to the download of a file.`, {
        code: "download_failed",
      });
    if (hop >= hops)
      fail("upstream", `${url.origin} redirects more than ${hops} times.`, {
        code: "download_failed",
      });
    url = through.check(URL.parse(String(next), url.href) ?? String(next));
  }
}

async function limited(
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
