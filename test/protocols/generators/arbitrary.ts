// Random requests, responses, and byte splits. Everything here is valid. Invalid content is written
// next to its test.
import * as fc from "fast-check";
import type {
  Block,
  ChatRequest,
  FinishReason,
  JsonObject,
  Media,
  ModelEvent,
  Proof,
  Tool,
  Turn,
  Usage,
} from "tollgate/plugin";
import { codePoint } from "../../kit/code-points.ts";

/**
 * Texts that are hard for codecs: quotes, line ends, markers of other protocols, and characters of
 * every width.
 */
export const words: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 24 }) },
  fc.constantFrom(
    "Hello, ",
    "wörld 🌍",
    'say "model":"other" now',
    "line\nbreak\r\n\r\n",
    "\n\ndata: [DONE]\n\n",
    "event: error",
    "\\u0022 \\ / \t",
    "\u2028\u2029\u0000\u001f",
    "</think><|im_end|>",
    '{"usage":null,"finish_reason":"stop"}',
  ),
);

const NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
const name = (max: number) =>
  fc
    .array(fc.constantFrom(...NAME), { minLength: 1, maxLength: max })
    .map((letters) => letters.join(""));
/** Valid in every protocol. */
export const toolName: fc.Arbitrary<string> = name(30).map((text) => `t${text}`);

/** An object that is the same after JSON: no negative zero, and nothing undefined. */
export const jsonObject: fc.Arbitrary<JsonObject> = fc
  .dictionary(
    fc.string({ maxLength: 8 }).filter((key) => key !== "__proto__"),
    fc.jsonValue({ maxDepth: 2, stringUnit: codePoint }),
    { maxKeys: 4 },
  )
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);

/** Bytes split anywhere, seldom between characters. */
export const chunking: fc.Arbitrary<{ seed: number; max: number }> = fc.record({
  seed: fc.nat(),
  max: fc.constantFrom(1, 2, 3, 7, 40, 400, 4000),
});

// ── answers ──

export interface AnswerShape {
  /** Several blocks open at the same time. Default: no. */
  readonly interleaved?: boolean;
  /** Creators of proofs. Default: none. */
  readonly proofs?: readonly Proof[];
  readonly kinds?: readonly ("text" | "reasoning" | "call" | "custom")[];
  /** Some responses are refusals, without any other text. */
  readonly refusals?: boolean;
  readonly maxBlocks?: number;
}

interface Sketch {
  readonly kind: "text" | "reasoning" | "refusal" | "call" | "custom";
  readonly pieces: readonly string[];
  readonly name: string;
  readonly args: JsonObject;
  readonly proof: Proof | undefined;
  readonly summary: boolean;
}

export const usage: fc.Arbitrary<Usage> = fc
  .record({
    input: fc.nat(100_000),
    cache_read: fc.nat(100_000),
    cache_write_5m: fc.nat(1000),
    cache_write_1h: fc.nat(1000),
    visible: fc.nat(10_000),
    reasoning: fc.nat(10_000),
  })
  .map(({ visible, ...counts }) => ({ ...counts, output: visible + counts.reasoning }));

/** Every possible response, as a stream of events that follows the grammar. */
export function answers(shape: AnswerShape = {}): fc.Arbitrary<ModelEvent[]> {
  const kinds = shape.kinds ?? ["text", "reasoning", "call"];
  const sketch: fc.Arbitrary<Sketch> = fc.record({
    kind: fc.constantFrom(...kinds),
    pieces: fc.array(words, { minLength: 1, maxLength: 5 }),
    name: toolName,
    args: jsonObject,
    proof: fc.constantFrom(undefined, ...(shape.proofs ?? [])),
    summary: fc.boolean(),
  });
  return fc
    .record({
      blocks: fc.array(sketch, { minLength: 1, maxLength: shape.maxBlocks ?? 5 }),
      usage,
      cut: fc.constantFrom<FinishReason | undefined>(undefined, undefined, "length", "filtered"),
      refuses: fc.constantFrom(false, false, false, shape.refusals === true),
      chance: fc.array(fc.nat(1000), { minLength: 64, maxLength: 64 }),
    })
    .map(({ blocks: sketched, usage: counts, cut, chance, refuses }) => {
      const blocks = refuses ? sketched.map(refusing) : sketched;
      return [
        { type: "start", id: "up1", model: "up" } as const,
        ...arranged(blocks.map(told), shape.interleaved === true, chance),
        { type: "usage", usage: counts } as const,
        { type: "finish", reason: cut ?? reasonOf(blocks) } as const,
      ];
    });
}

const refusing = (sketch: Sketch): Sketch =>
  sketch.kind === "text" ? { ...sketch, kind: "refusal" } : sketch;

const reasonOf = (blocks: readonly Sketch[]): FinishReason =>
  blocks.some(({ kind }) => kind === "call" || kind === "custom")
    ? "tool_calls"
    : blocks.some(({ kind }) => kind === "refusal")
      ? "refusal"
      : "stop";

/** One block's own events, in order. */
function told(sketch: Sketch, index: number): ModelEvent[] {
  const { kind, pieces, proof } = sketch;
  const texts =
    kind === "call" ? shredded(JSON.stringify(sketch.args), pieces.length) : [...pieces];
  const id = `call_${index}_${sketch.name.length}`;
  const block =
    kind === "call" || kind === "custom"
      ? ({
          type: "call",
          id,
          name: sketch.name,
          tool: kind === "call" ? "function" : "custom",
        } as const)
      : kind === "reasoning"
        ? { type: kind, ...(sketch.summary && { summary: true }) }
        : { type: kind };
  return [
    { type: "open", index, block },
    ...texts.map((text) => ({ type: "delta", index, text }) as const),
    ...(proof && kind === "reasoning" ? [{ type: "proof", index, proof } as const] : []),
    { type: "close", index },
  ];
}

/** Split between UTF-16 units, like models' tokens: a surrogate pair may be split. */
function shredded(text: string, pieces: number): string[] {
  const length = Math.ceil(text.length / pieces);
  const parts: string[] = [];
  for (let i = 0; i < text.length; i += length) parts.push(text.slice(i, i + length));
  return parts;
}

/** One after another, or in random order. Blocks open in their order. */
function arranged(
  queues: readonly ModelEvent[][],
  interleaved: boolean,
  chance: readonly number[],
): ModelEvent[] {
  if (!interleaved) return queues.flat();
  const left = queues.map((events) => [...events]);
  const out: ModelEvent[] = [];
  let opened = 0;
  for (let turn = 0; left.some((events) => events.length > 0); turn++) {
    const ready = left.filter((events, i) => events.length > 0 && i <= opened);
    const events = ready[chance[turn % chance.length]! % ready.length]!;
    const next = events.shift()!;
    if (next.type === "open") opened++;
    out.push(next);
  }
  return out;
}

// ── requests ──

const media: fc.Arbitrary<Media> = fc.oneof(
  fc.constantFrom<Media>(
    { url: "https://example.com/a.png" },
    { mime: "image/png", base64: "iVBORw0KGgo=" },
    { mime: "image/jpeg", base64: "/9j/4AAQ" },
  ),
);
const saying: fc.Arbitrary<Block> = words.map((text) => ({ type: "text", text }));
const picture: fc.Arbitrary<Block> = media.map((image) => ({ type: "image", media: image }));
const paper: fc.Arbitrary<Block> = fc.constantFrom<Block>(
  { type: "document", media: { mime: "application/pdf", base64: "JVBERi0=" }, title: "a.pdf" },
  { type: "document", media: { mime: "application/pdf", base64: "JVBERi1BBBB=" } },
);

export interface RequestShape {
  readonly media?: boolean;
  /** Sampling and other parameters. */
  readonly knobs?: boolean;
  /** System and developer turns in the middle. */
  readonly interjections?: boolean;
}

interface Round {
  readonly ask: readonly Block[];
  readonly say: string | undefined;
  readonly calls: readonly { name: string; args: JsonObject; result: string; isError: boolean }[];
  readonly interject: string | undefined;
}

export function requests(shape: RequestShape = {}): fc.Arbitrary<ChatRequest> {
  const asked = shape.media ? fc.oneof(saying, picture, paper) : saying;
  const round: fc.Arbitrary<Round> = fc.record({
    ask: fc.array(asked, { minLength: 1, maxLength: 3 }),
    say: fc.option(words, { nil: undefined }),
    calls: fc.array(
      fc.record({ name: toolName, args: jsonObject, result: words, isError: fc.boolean() }),
      { maxLength: 2 },
    ),
    interject: shape.interjections ? fc.option(words, { nil: undefined }) : fc.constant(undefined),
  });
  return fc
    .record({
      rounds: fc.array(round, { maxLength: 3 }),
      last: fc.array(asked, { minLength: 1, maxLength: 3 }),
      instructions: fc.array(saying, { maxLength: 2 }),
      stream: fc.boolean(),
      tools: fc.array(tool, { maxLength: 3 }),
      knobs: shape.knobs ? knobs : fc.constant({}),
    })
    .map(({ rounds, last, instructions, stream, tools, knobs: set }) => {
      const declared = unique(tools, rounds);
      return {
        operation: "chat",
        model: "model",
        stream,
        instructions,
        turns: [...rounds.flatMap(turnsOf), { role: "user", blocks: last }],
        tools: declared,
        output: {},
        sampling: {},
        reasoning: { mode: "auto" },
        state: {},
        rest: {},
        ext: {},
        ...set,
        ...(declared.length === 0 && { toolChoice: undefined, parallelToolCalls: undefined }),
      } satisfies ChatRequest;
    });
}

const tool: fc.Arbitrary<Tool> = fc.record({
  type: fc.constant("function" as const),
  name: toolName,
  description: fc.option(words, { nil: undefined }),
  schema: fc.constantFrom<JsonObject>(
    { type: "object", properties: {} },
    { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  ),
});

/** Every called tool is declared, and no name twice. */
function unique(tools: readonly Tool[], rounds: readonly Round[]): Tool[] {
  const called = rounds.flatMap(({ calls }) => calls.map(({ name: of }) => of));
  const all = new Map(tools.map((one) => [one.name, one]));
  for (const one of called)
    if (!all.has(one))
      all.set(one, { type: "function", name: one, schema: { type: "object", properties: {} } });
  return [...all.values()];
}

function turnsOf({ ask, say, calls, interject }: Round, round: number): Turn[] {
  const ids = calls.map((_, i) => `call_${round}_${i}`);
  const turns: Turn[] = [{ role: "user", blocks: ask }];
  const said: Block[] =
    say === undefined && calls.length > 0 ? [] : [{ type: "text", text: say ?? "Yes." }];
  const asCalls = calls.map(({ name: of, args }, i): Block => ({
    type: "call",
    id: ids[i]!,
    name: of,
    tool: "function",
    args: JSON.stringify(args),
  }));
  turns.push({ role: "assistant", blocks: [...said, ...asCalls] });
  calls.forEach(({ result, isError }, i) =>
    turns.push({
      role: "tool",
      blocks: [
        { type: "result", callId: ids[i]!, blocks: [{ type: "text", text: result }], isError },
      ],
    }),
  );
  if (interject !== undefined)
    turns.push({ role: "system", blocks: [{ type: "text", text: interject }] });
  return turns;
}

const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 2 });

/** Every parameter, within the range that every protocol accepts. */
const knobs: fc.Arbitrary<Partial<ChatRequest>> = fc.record({
  user: maybe(fc.constantFrom("user-1", "abc")),
  toolChoice: maybe(fc.constantFrom<"auto" | "none" | "required">("auto", "none", "required")),
  parallelToolCalls: maybe(fc.boolean()),
  output: fc.record({
    maxTokens: maybe(fc.integer({ min: 1, max: 100_000 })),
    stop: maybe(fc.constantFrom<readonly string[]>(["END"], ["a", "b"])),
    verbosity: maybe(fc.constantFrom("low", "high")),
    format: maybe(
      fc.constantFrom(
        { type: "text" as const },
        { type: "json" as const },
        { type: "schema" as const, schema: { type: "object" }, name: "answer", strict: true },
        { type: "schema" as const, schema: { type: "object" }, name: "other" },
      ),
    ),
  }),
  sampling: fc.record({
    temperature: maybe(fc.constantFrom(0, 0.3, 1, 1.7)),
    topP: maybe(fc.constantFrom(0.1, 1)),
    topK: maybe(fc.constantFrom(1, 40)),
    presence: maybe(fc.constantFrom(-1, 0.5)),
    frequency: maybe(fc.constantFrom(-1, 0.5)),
    seed: maybe(fc.integer({ min: 0, max: 2 ** 31 })),
    logprobs: maybe(fc.constantFrom(0, 5)),
    logitBias: maybe(fc.constant({ "50256": -100 })),
  }),
  reasoning: fc.oneof(
    fc.constant({ mode: "auto" as const }),
    fc.constant({ mode: "off" as const }),
    fc.constantFrom("low", "medium", "high").map((effort) => ({ mode: "effort" as const, effort })),
    fc.constantFrom(1024, 8000).map((budget) => ({ mode: "budget" as const, budget })),
  ),
  tier: maybe(fc.constantFrom("auto", "flex", "priority")),
  metadata: maybe(fc.constant({ trace: "t1" })),
  cache: maybe(fc.constantFrom<NonNullable<ChatRequest["cache"]>>({ key: "k" }, { auto: true })),
});
