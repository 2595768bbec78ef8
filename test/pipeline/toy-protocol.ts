// The smallest protocol with all features: one JSON line per event, both halves, and a relay. It
// tests the pipeline independently of any real codec.
import { StringDecoder } from "node:string_decoder";
import {
  chatOperation,
  fail,
  type Body,
  type FinishReason,
  type Json,
  type Protocol,
} from "tollgate/plugin";

interface Line {
  say?: string;
  usage?: { input: number; output: number };
  end?: FinishReason;
  error?: string;
  model?: string;
  id?: string;
}

function parsed(text: string): Line {
  try {
    return JSON.parse(text) as Line;
  } catch (cause) {
    return fail("upstream", "What came is no line.", { code: "bad_json", cause });
  }
}

/** Proxies may respond with anything. */
function errorIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as Line | null)?.error ?? undefined;
  } catch {
    return undefined;
  }
}

const splitter = (on: (line: string) => void) => {
  let rest = "";
  // A character may be split into two chunks.
  const text = new StringDecoder("utf8");
  return {
    push(chunk: Buffer) {
      rest += text.write(chunk);
      for (let i = rest.indexOf("\n"); i >= 0; i = rest.indexOf("\n")) {
        const line = rest.slice(0, i);
        rest = rest.slice(i + 1);
        if (line !== "") on(line);
      }
    },
    get empty() {
      return rest === "";
    },
  };
};

export const createToyProtocol = (
  id = "toy",
  options: { relay?: boolean; loses?: string } = {},
): Protocol<"chat"> => ({
  id,
  operationSpec: chatOperation,
  headers: { request: ["x-toy-*"], response: ["x-toy-*"] },
  server: {
    schema: {
      type: "object",
      required: ["model", "text"],
      properties: {
        model: { type: "string" },
        text: { type: "string" },
        stream: { type: "boolean" },
      },
    },
    analyze: (body) => ({ features: [], maxOutput: body["max"] as number | undefined }),
    decodeRequest: (body) => ({
      operation: "chat",
      model: body["model"] as string,
      stream: body["stream"] === true,
      instructions: [],
      turns: [{ role: "user", blocks: [{ type: "text", text: body["text"] as string }] }],
      tools: [],
      output: { maxTokens: body["max"] as number | undefined },
      sampling: {},
      reasoning: { mode: "auto" },
      state: {},
      rest: Object.fromEntries(
        Object.entries(body).filter(([k]) => !["model", "text", "stream", "max"].includes(k)),
      ) as Record<string, Json>,
      ext: {},
    }),
    createEncoder: (write, to) => {
      let usage: Json = {};
      const line = (o: object) => write(`${JSON.stringify(o)}\n`);
      return {
        writeEvent(e) {
          if (e.type === "start") line({ id: to.id, model: to.model });
          else if (e.type === "delta") line({ say: e.text });
          else if (e.type === "usage") usage = e.usage as Json;
          else if (e.type === "finish") line({ usage, end: e.reason });
        },
        writeFault: (f) => line({ error: f.message, kind: f.kind }),
      };
    },
    encodeResponse: (m, to) => ({
      model: to.model,
      say: m.blocks.map((b) => (b.type === "text" ? b.text : "")).join(""),
      usage: m.usage as Json,
      end: m.finish.reason,
    }),
    encodeFault: (f) => ({ body: { error: f.message, kind: f.kind, code: f.code ?? null } }),
    encodeHeaders: ({ id: request }) => ({ "x-request-id": request }),
    encodeCount: (tokens) => ({ tokens }),
    ping: "\n",
  },
  client: {
    paths: { generate: "/toy", count: "/toy/count" },
    encodeRequest: (r, call): Body => {
      if (options.loses) call.reportLoss(options.loses, "dropped", "toy_cannot");
      const [turn] = r.turns;
      const [block] = turn!.blocks;
      return {
        model: call.model,
        stream: call.stream,
        text: block!.type === "text" ? block!.text : "",
        max: r.output.maxTokens,
      };
    },
    capOutput: (out, tokens) => out.set("max", tokens),
    createDecoder(emit) {
      let open = false;
      let ended = false;
      const lines = splitter((text) => {
        const line = JSON.parse(text) as Line;
        if (line.error) fail("upstream", line.error);
        if (line.id) emit({ type: "start", id: line.id });
        if (line.say !== undefined) {
          if (!open) emit({ type: "open", index: 0, block: { type: "text" } });
          open = true;
          emit({ type: "delta", index: 0, text: line.say });
        }
        if (line.usage) emit({ type: "usage", usage: line.usage });
        if (line.end) {
          ended = true;
          if (open) emit({ type: "close", index: 0 });
          emit({ type: "finish", reason: line.end });
        }
      });
      return {
        push: lines.push,
        end() {
          if (!ended) fail("upstream", "truncated", { code: "truncated" });
        },
      };
    },
    decodeResponse(body, emit) {
      const line = parsed(body.toString());
      emit({ type: "start", id: line.id });
      emit({ type: "open", index: 0, block: { type: "text" } });
      emit({ type: "delta", index: 0, text: line.say ?? "" });
      emit({ type: "close", index: 0 });
      if (line.usage) emit({ type: "usage", usage: line.usage });
      emit({ type: "finish", reason: line.end ?? "stop" });
    },
    decodeFault: (status, headers, body) => ({
      kind:
        status === 429
          ? "rate_limited"
          : status === 401
            ? "upstream_auth"
            : status >= 500
              ? "overloaded"
              : "invalid",
      message: errorIn(body.toString()) ?? `status ${status}`,
      ...(headers["retry-after"] !== undefined && {
        retryAfterMs: Number(headers["retry-after"]) * 1000,
      }),
    }),
    decodeCount: (body) => (JSON.parse(body.toString()) as { tokens: number }).tokens,
    ...(options.relay !== false && {
      createPassthrough(sink, to) {
        let ended = false;
        const pass = (text: string) => {
          const line = JSON.parse(text) as Line;
          if (line.error) fail("upstream", line.error);
          if (line.id) sink.reportStart(line.id);
          if (line.say !== undefined) sink.reportContent();
          if (line.usage) sink.reportUsage({ type: "usage", usage: line.usage });
          if (line.end) {
            ended = true;
            sink.reportFinish(line.end);
          }
          if (line.model !== undefined) line.model = to.model;
          sink.write(Buffer.from(`${JSON.stringify(line)}\n`));
        };
        const lines = splitter(pass);
        return {
          push: (chunk) => (to.stream ? lines.push(chunk) : pass(chunk.toString())),
          end() {
            if (!ended) fail("upstream", "truncated", { code: "truncated" });
          },
          writeFault: (f) =>
            sink.write(Buffer.from(`${JSON.stringify({ error: f.message, kind: f.kind })}\n`)),
          get isBetweenEvents() {
            return lines.empty;
          },
        };
      },
    }),
  },
});
