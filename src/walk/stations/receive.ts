import { isAscii, isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { BOUNDS } from "../../lib/bounds.ts";
import { scan, Scanner, type Scan, type Span } from "../../lib/json.ts";
import { fail, fault } from "../../model/error.ts";
import { exceed } from "../../model/excess.ts";
import type { Kind } from "../../model/request.ts";
import type { Body } from "../../model/values.ts";
import type { ServerHalf, Survey } from "../../plugin/protocol.ts";
import { featuresOf, look } from "../../protocols/look/index.ts";
import type { ReceivedBody, HostExchange } from "../exchange.ts";
import { keepsNothing } from "../candidates/privacy.ts";
import { breath, LARGE, turn } from "../bounds/turn.ts";
import { oneReading } from "./ambiguous-keys.ts";

/** A body of unknown length gets its room in pieces of this. */
const PIECE = 64 * 1024;

/** What a look over a large body does at once. */
const STEP = 4 * 1024 * 1024;

/** The body, now: size, UTF-8, one meaning only, JSON, schema. The arrival becomes an exchange. */
export async function receive(x: HostExchange): Promise<void> {
  const inner = x["~"];
  const { frontend, gen, req, res } = inner;
  const route = inner.route!;
  const bodiless = x.method === "GET" || x.method === "DELETE" || x.method === "HEAD";
  if (!bodiless) expectJson(req);
  // Whoever left while it was admitted sends no more events.
  if (inner.gone || req.destroyed) fail("canceled", "The client went away.");
  if (!bodiless) makeRoom(x);
  if (req.headers.expect !== undefined) res.writeContinue();
  const raw = bodiless ? Buffer.alloc(0) : await collect(x);
  const understood: Understood | Promise<Understood> = bodiless
    ? { body: {}, spans: null, odd: false }
    : understand(raw, gen.maxValues);
  const { body, spans, odd } = "then" in understood ? await understood : understood;
  if (!bodiless) {
    if (odd) oneReading(body, frontend.server?.schema);
    const tools = body["tools"];
    if (Array.isArray(tools) && tools.length > BOUNDS.tools.most)
      exceed("tools", undefined, { param: "tools" });
    const wrong = frontend.validate(body);
    if (wrong)
      fail("invalid", `${wrong.pointer === "" ? "The body" : wrong.pointer} ${wrong.message}.`, {
        param: dotted(wrong.pointer),
        code: "invalid_request",
      });
  }
  const pause = breath(raw.length);
  if (pause) await pause;
  const sent = bodiless ? NOTHING : surveyed(frontend.server, body);
  if (x.privacy !== "off") keepsNothing(x, sent);
  const read = route.read && (await route.read(x, body));
  const model = read?.model ?? body["model"];
  const pinned = typeof model === "object" ? (model as ReceivedBody["pinned"]) : undefined;
  if (!pinned && typeof model !== "string")
    fail("invalid", "model is required and must be a string.", {
      param: "model",
      code: "invalid_request",
    });
  const seen = read?.edits ? { ...body, ...read.edits } : body;
  inner.received = {
    raw,
    bytes: raw.length + bytesOf(read?.edits),
    spans,
    body: seen,
    survey: seen === body ? sent : surveyed(frontend.server, seen),
    model: pinned ? `${pinned.provider}/${pinned.model}` : (model as string),
    pinned,
    stream: (read?.stream ?? seen["stream"]) === true,
    op: read?.op ?? route.op,
    name: read?.name ?? route.name ?? route.op,
    sent: body,
    edits: read?.edits,
    record: read?.record,
  };
}

const NOTHING: Survey = { features: [], named: [] };

/** What a protocol sees in it, and what stands in the tables that hold for all of them. */
function surveyed(server: ServerHalf<Kind> | undefined, body: Body): Survey {
  const survey = server?.survey(body) ?? NOTHING;
  if (survey.named && survey !== NOTHING) return survey;
  const named = look(body);
  if (named.length === 0) return { ...survey, named };
  return { ...survey, named, features: [...new Set([...featuresOf(named), ...survey.features])] };
}

const bytesOf = (edits: Body | undefined): number =>
  edits === undefined ? 0 : Buffer.byteLength(JSON.stringify(edits));

function expectJson(req: IncomingMessage): void {
  const type = req.headers["content-type"] ?? "";
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(type))
    fail(
      "invalid",
      `Send the body as Content-Type: application/json${type ? `, not ${type}` : ""}.`,
      {
        code: "unsupported_media_type",
      },
    );
}

/** Before a byte of it is read: what its head says that it will be. */
function makeRoom(x: HostExchange): void {
  const { gen, req } = x["~"];
  const said = Number(req.headers["content-length"] ?? 0);
  if (said > gen.maxBodyBytes) exceed("body", gen.maxBodyBytes);
  x["~"].stay.hold(req.headers["content-length"] === undefined ? PIECE : said);
}

/** The body's bytes. Too many are refused as soon as that is known. */
function collect(x: HostExchange): Promise<Buffer> {
  const { gen, req } = x["~"];
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on("data", (chunk: Buffer) => {
      size += chunk.length;
      try {
        if (size > gen.maxBodyBytes) exceed("body", gen.maxBodyBytes);
        while (size > x["~"].stay.held) x["~"].stay.hold(PIECE);
      } catch (error) {
        req.removeAllListeners("data");
        req.pause();
        chunks.length = 0;
        return reject(error as Error);
      }
      chunks.push(chunk);
    });
    const cut = () => {
      // Fires after a whole body too; making an error is dear.
      if (req.complete && req.readableEnded) return;
      chunks.length = 0;
      reject(fault("canceled", "The request ended before its body did."));
    };
    req.on("end", () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)));
    req.on("error", cut);
    req.on("close", cut);
  });
}

interface Understood {
  body: Body;
  spans: Map<string, Span> | null;
  odd: boolean;
}

const bad = (message: string, code: string): never => fail("invalid", message, { code });

/** A large one in several turns: nobody else waits for all of it. */
function understand(raw: Buffer, values: number): Understood | Promise<Understood> {
  if (raw.length === 0) bad("The body is empty.", "invalid_json");
  const ascii = isAscii(raw);
  if (!ascii && !isUtf8(raw)) bad("The body is not valid UTF-8.", "invalid_utf8");
  const written = () => raw.toString(ascii ? "latin1" : "utf8");
  if (raw.length >= LARGE) return slowly(raw, values, written);
  const seen = bounded(scan(raw, values), values);
  return parsed(written(), seen);
}

async function slowly(raw: Buffer, values: number, written: () => string): Promise<Understood> {
  const scanner = new Scanner(raw, values);
  let seen: Scan | undefined;
  while (!(seen = scanner.look(STEP))) await turn();
  bounded(seen, values);
  await turn();
  const text = written();
  await turn();
  const understood = parsed(text, seen);
  await turn();
  return understood;
}

/** What is too much is not parsed. */
function bounded(seen: Scan, values: number): Scan {
  const bound = seen.flaw?.bound;
  if (bound) exceed(bound, bound === "values" ? values : undefined);
  return seen;
}

function parsed(text: string, seen: Scan): Understood {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    const [, at] = /position (\d+)/.exec((error as Error).message) ?? [];
    bad(`The body is not JSON${at ? `: see character ${at}` : ""}.`, "invalid_json");
  }
  if (seen.flaw) return bad(seen.flaw.message, seen.flaw.code);
  return { body: body as Body, spans: seen.spans, odd: seen.odd };
}

/** "/messages/0/role" → "messages.0.role", as SDK users know it. */
const dotted = (pointer: string): string | undefined =>
  pointer === "" ? undefined : pointer.slice(1).replaceAll("/", ".");
