// The content of a request or a response, independent of its protocol: if two are equal here, they
// have the same meaning for the model and the client.
import {
  inputTokens,
  outputTokens,
  type Block,
  type ChatRequest,
  type FinishReason,
  type Media,
  type ModelResponse,
} from "tollgate/plugin";
import { withoutUndefined, type ReportedLoss } from "tollgate/testing";

/** Finish reasons that a reader treats alike: no protocol distinguishes all of them. */
const ENDS: { readonly [reason in FinishReason]: string } = {
  stop: "stop",
  stop_sequence: "stop",
  pause: "stop",
  other: "stop",
  length: "length",
  context: "length",
  tool_calls: "tool_calls",
  filtered: "refused",
  refusal: "refused",
};

export interface Called {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
}

export interface Said {
  /** Visible text. A refusal is part of it. */
  readonly text: string;
  readonly thought: string;
  readonly calls: readonly Called[];
  readonly end: string;
  readonly usage: { readonly [count: string]: number };
}

export function said(answer: ModelResponse): Said {
  const { blocks, usage } = answer;
  const refused = blocks.some((block) => block.type === "refusal");
  return {
    text: blocks.map((b) => (b.type === "text" || b.type === "refusal" ? b.text : "")).join(""),
    thought: blocks
      .map((b) => (b.type === "reasoning" ? (b.text ?? b.summary?.join("\n\n") ?? "") : ""))
      .join(""),
    calls: blocks.flatMap((b) => (b.type === "call" ? [callOf(b)] : [])),
    // A protocol has either a finish reason or a text field for a refusal.
    end: refused && answer.finish.reason === "stop" ? "refused" : ENDS[answer.finish.reason],
    usage: {
      input: inputTokens(usage),
      cached: usage.cache_read ?? 0,
      output: outputTokens(usage),
      reasoning: usage.reasoning ?? 0,
    },
  };
}

/** Arguments by meaning: the parsed object, or the text of a freeform tool. */
const callOf = ({ id, name, tool, args }: Extract<Block, { type: "call" }>): Called => ({
  id,
  name,
  args: tool === "custom" ? args : (JSON.parse(args === "" ? "{}" : args) as unknown),
});

// ── requests ──

interface Line {
  readonly who: string;
  readonly what: unknown;
}

/**
 * A conversation as the model reads it: content by role, in order. Consecutive content of one role
 * is one turn.
 */
export function conversation(request: ChatRequest): Line[] {
  const lines: Line[] = [];
  const add = (who: string, what: unknown) => {
    const last = lines.at(-1);
    if (typeof what === "string" && typeof last?.what === "string" && last.who === who)
      lines[lines.length - 1] = { who, what: last.what + what };
    else if (what !== "") lines.push({ who, what });
  };
  const block = (who: string, b: Block) => {
    switch (b.type) {
      case "text":
      case "refusal":
        return add(who, dense(b.text));
      case "call":
        return add(who, { call: callOf(b) });
      case "result":
        return add("tool", {
          result: b.callId,
          text: dense(textOf(b.blocks)),
          media: mediaIn(b.blocks),
        });
      case "image":
      case "document":
      case "audio":
      case "video":
        return add(who, { [b.type]: mediaOf(b.media) });
      // Reasoning is sent back to its provider, and opaque content belongs to one protocol.
      default:
        return undefined;
    }
  };
  for (const b of request.instructions) block("system", b);
  for (const turn of request.turns) {
    const who = turn.role === "developer" ? "system" : turn.role;
    for (const b of turn.blocks) block(who, b);
  }
  return lines;
}

/** Protocols join the text of several blocks with line breaks. */
const dense = (text: string) => text.replace(/\s+/g, "");
const textOf = (blocks: readonly Block[]) =>
  blocks.map((b) => (b.type === "text" ? b.text : "")).join("");
const mediaIn = (blocks: readonly Block[]) =>
  blocks.flatMap((b) => (b.type === "image" || b.type === "document" ? [mediaOf(b.media)] : []));

function mediaOf(media: Media): unknown {
  if ("bytes" in media) return { base64: media.bytes.toString("base64"), mime: media.mime };
  if ("base64" in media) return { base64: media.base64, mime: media.mime };
  return "url" in media ? media.url : media.fileId;
}

/** Each parameter by name, as a plain value. Parameters without effect are omitted. */
export function knobs(request: ChatRequest): { readonly [name: string]: unknown } {
  const { output, sampling, reasoning, tools, ...r } = request;
  const { logitBias, ...numbers } = sampling;
  return withoutUndefined({
    ...numbers,
    logitBias,
    maxTokens: output.maxTokens,
    stop: output.stop,
    verbosity: output.verbosity,
    format: formatOf(output.format),
    toolChoice: r.toolChoice === "auto" ? undefined : r.toolChoice,
    // A model that may call no tool calls none in parallel.
    parallel:
      r.parallelToolCalls === true || r.toolChoice === "none" ? undefined : r.parallelToolCalls,
    user: r.user,
    tier: r.tier === "auto" ? undefined : r.tier,
    cache: r.cache?.key,
    reasoning,
    tools: tools.map(({ name, description, schema }) => ({ name, description, schema })),
    stream: r.stream,
  }) as { readonly [name: string]: unknown };
}

/**
 * A schema's name is a label that only some protocols need, and strictness is all that some
 * support.
 */
function formatOf(format: ChatRequest["output"]["format"]): unknown {
  if (format?.type === "text") return undefined;
  if (format?.type !== "schema") return format;
  return { ...format, name: undefined, strict: format.strict === false ? false : undefined };
}

/** Possible names of a parameter in a warning. */
const WORDS: { readonly [knob: string]: RegExp } = {
  temperature: /temperature/i,
  topP: /top_?p/i,
  topK: /top_?k/i,
  presence: /presence/i,
  frequency: /frequency/i,
  seed: /seed/i,
  logitBias: /logit_?bias/i,
  logprobs: /logprobs/i,
  maxTokens: /max_?.*tokens/i,
  stop: /stop/i,
  verbosity: /verbosity/i,
  format: /format/i,
  toolChoice: /tool_?choice|allowed/i,
  parallel: /parallel/i,
  user: /user|safety|metadata/i,
  tier: /tier/i,
  cache: /cache/i,
  reasoning: /reasoning|thinking|effort|budget/i,
  tools: /tools?\b/i,
};

/** Parameters that changed although no client set them. */
export function silently(
  before: ChatRequest,
  after: ChatRequest,
  losses: readonly ReportedLoss[],
): string[] {
  const [was, is] = [knobs(before), knobs(after)];
  const declared = losses.map(({ field, code }) => `${field} ${code ?? ""}`).join("\n");
  return Object.keys({ ...was, ...is }).flatMap((name) => {
    if (JSON.stringify(was[name]) === JSON.stringify(is[name])) return [];
    if (WORDS[name]?.test(declared)) return [];
    return [`${name}: ${JSON.stringify(was[name])} became ${JSON.stringify(is[name])}`];
  });
}
