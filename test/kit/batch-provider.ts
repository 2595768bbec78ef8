// A provider that runs batches in memory, for tests in one process. Its failures are those of real
// providers: submissions whose response is lost, and results that are lost, repeated, or out of order.
import {
  apiKeySchema,
  defineProvider,
  fail,
  type BatchResult,
  type BatchStatus,
  type EndpointBatches,
} from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";

export interface FakeBatch {
  readonly key: string;
  readonly model: string;
  readonly path: string;
  readonly lines: readonly { readonly id: string; readonly body: string }[];
  polls: number;
  isCanceled: boolean;
  isDiscarded: boolean;
}

/** State and behavior of the provider. A test changes it before it creates a batch. */
export interface FakeBatchApi {
  readonly batches: Map<string, FakeBatch>;
  /** Number of polls until a batch ends. */
  pollsToEnd: number;
  maxLines: number;
  /** Whether the bodies of lines are kept. Without them, a large batch uses no memory here. */
  keepsBodies: boolean;
  /** Called before a method runs. It may throw. */
  before: (method: "submit" | "find" | "poll" | "readResults" | "cancel") => void;
  /** Called when a batch was accepted. It may throw, and the response is lost. */
  afterSubmit: () => void;
  outcome: BatchStatus["outcome"];
  /** Returns the results of a batch, in their order. */
  results: (batch: FakeBatch) => Iterable<BatchResult>;
}

const shared = globalThis as { tollgateFakeBatches?: FakeBatchApi };

export const fakeBatches = (): FakeBatchApi =>
  (shared.tollgateFakeBatches ??= { batches: new Map(), ...defaults() });

const defaults = (): Omit<FakeBatchApi, "batches"> => ({
  pollsToEnd: 1,
  maxLines: 50_000,
  keepsBodies: true,
  before() {},
  afterSubmit() {},
  outcome: "completed",
  results: ({ lines }) => lines.map(answerLine),
});

/** Restores the ordinary behavior, and forgets all batches. */
export function resetFakeBatches(): FakeBatchApi {
  const api = fakeBatches();
  api.batches.clear();
  return Object.assign(api, defaults());
}

/** Usage of a line, which follows from its text. */
export const usageOf = (body: string): { prompt_tokens: number; completion_tokens: number } => ({
  prompt_tokens: body.length,
  completion_tokens: (body.length % 7) + 1,
});

export function answerLine({
  id,
  body,
}: {
  readonly id: string;
  readonly body: string;
}): BatchResult {
  const { prompt_tokens, completion_tokens } = usageOf(body);
  const { model, messages } = JSON.parse(body) as {
    model: string;
    messages: { content: unknown }[];
  };
  return {
    id,
    outcome: "answered",
    status: 200,
    requestId: `req-${id}`,
    body: {
      id: `chatcmpl-${id}`,
      object: "chat.completion",
      created: 1,
      model,
      service_tier: "default",
      choices: [
        {
          index: 0,
          finish_reason: "stop",
          message: {
            role: "assistant",
            content: `echo ${JSON.stringify(messages.at(-1)?.content)}`,
          },
        },
      ],
      usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
    },
  };
}

const batchOf = (reference: string): FakeBatch =>
  fakeBatches().batches.get(reference) ?? fail("not_found", "No such batch.");

const batches: EndpointBatches = {
  get limits() {
    return { lines: fakeBatches().maxLines, bytes: 200 * 1024 * 1024 };
  },
  servesModel: (model) => model !== "no-batches",
  async submit({ key, model, path, count, bytes, lines }) {
    const api = fakeBatches();
    api.before("submit");
    const all: { id: string; body: string }[] = [];
    let size = 0;
    for await (const line of lines()) {
      size += Buffer.byteLength(line.body);
      all.push(api.keepsBodies ? line : { ...line, body: "" });
    }
    if (all.length !== count || size !== bytes) fail("invalid", "The input has another size.");
    const reference = `fake-${key}-${api.batches.size}`;
    const state = { polls: 0, isCanceled: false, isDiscarded: false };
    api.batches.set(reference, { key, model, path, lines: all, ...state });
    api.afterSubmit();
    return reference;
  },
  async find(key) {
    const api = fakeBatches();
    api.before("find");
    return [...api.batches].find(([, batch]) => batch.key === key)?.[0];
  },
  async poll(reference) {
    const api = fakeBatches();
    api.before("poll");
    const batch = batchOf(reference);
    const isEnded =
      (batch.model !== "endless" && ++batch.polls >= api.pollsToEnd) || batch.isCanceled;
    if (!isEnded) return { state: "running", counts: { succeeded: 0, failed: 0 } };
    return { state: "ended", outcome: batch.isCanceled ? "canceled" : api.outcome };
  },
  async *readResults(reference) {
    const api = fakeBatches();
    api.before("readResults");
    yield* api.results(batchOf(reference));
  },
  async cancel(reference) {
    fakeBatches().before("cancel");
    batchOf(reference).isCanceled = true;
  },
  async discard(reference) {
    batchOf(reference).isDiscarded = true;
  },
};

const price = (input: string, output: string, batchInput: string, batchOutput: string) =>
  ({
    lines: [
      { unit: "input", usd: input, per: 1_000_000 },
      { unit: "output", usd: output, per: 1_000_000 },
    ],
    tiers: {
      batch: [
        { unit: "input", usd: batchInput, per: 1_000_000 },
        { unit: "output", usd: batchOutput, per: 1_000_000 },
      ],
    },
  }) as const;

export default defineProvider({
  api: 1,
  name: "fake-batches",
  summary: "Runs batches in memory",
  credential: apiKeySchema,
  facts: {
    asOf: "2026-11-01",
    models: [
      { model: "small", operation: "chat", price: price("2", "8", "1", "4") },
      { model: "large", operation: "chat", price: price("4", "16", "2", "8") },
      { model: "unpriced", operation: "chat" },
      { model: "no-batches", operation: "chat", price: price("2", "8", "1", "4") },
    ],
  },
  setup: () => ({
    endpoints: [
      {
        protocol: chatCompletions(),
        base: "http://127.0.0.1:9/v1",
        auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
        batches,
      },
    ],
  }),
});
