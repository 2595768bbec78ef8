// Canonical events in their worst forms, from decoders of any protocol to any server half.
import type { ModelEvent } from "tollgate/plugin";
import { shuffled, times } from "./requests.ts";

const open = (index: number, type: "text" | "reasoning" | "refusal" = "text"): ModelEvent => ({
  type: "open",
  index,
  block: { type },
});
const call = (index: number, name = "f"): ModelEvent => ({
  type: "open",
  index,
  block: { type: "call", id: `c${index}`, name, tool: "function" },
});
const say = (index: number, text = "x"): ModelEvent => ({ type: "delta", index, text });
const close = (index: number): ModelEvent => ({ type: "close", index });
const cite = (index: number, citation: object): ModelEvent => ({
  type: "cite",
  index,
  citation: citation as never,
});
const proof = (index: number): ModelEvent => ({
  type: "proof",
  index,
  proof: { origin: "gemini", kind: "part", data: "c2ln" },
});
const begin: ModelEvent = { type: "start", id: "u1", model: "up" };
const finish: ModelEvent = { type: "finish", reason: "stop" };
const all = (...events: readonly (ModelEvent | readonly ModelEvent[])[]): ModelEvent[] => [
  begin,
  ...events.flat(),
  { type: "usage", usage: { input: 1, output: 1 } },
  finish,
];

export const eventShapes: { readonly [shape: string]: (n: number) => ModelEvent[] } = {
  "many deltas": (n) =>
    all(
      open(0),
      times(n, () => say(0)),
      close(0),
    ),
  "many blocks": (n) => all(times(n, (i) => [open(i), say(i), close(i)]).flat()),
  "texts open together": (n) =>
    all(
      times(n, (i) => open(i)),
      times(n, (i) => say(i)),
      times(n, close),
    ),
  "texts open together, in any order": (n) =>
    all(
      times(n, (i) => open(i)),
      shuffled(times(n, (i) => say(i))),
      shuffled(times(n, close)),
    ),
  "texts open together, closed backwards": (n) =>
    all(
      times(n, (i) => open(i)),
      times(n, (i) => say(i)),
      times(n, close).toReversed(),
    ),
  "thoughts, texts and refusals open together": (n) =>
    all(
      times(n, (i) => open(i, (["text", "reasoning", "refusal"] as const)[i % 3])),
      times(n, (i) => say(i)),
      times(n, close),
    ),
  "calls open together": (n) =>
    all(
      times(n, (i) => call(i)),
      times(n, (i) => say(i, "{}")),
      shuffled(times(n, close)),
    ),
  "calls that are told late": (n) =>
    all(
      times(n, (i) => call(i)),
      times(n, close).toReversed(),
    ),
  "a call in many pieces": (n) =>
    all(
      call(0),
      say(0, '{"a":"'),
      times(n, () => say(0)),
      say(0, '"}'),
      close(0),
    ),
  "calls by names that were fitted": (n) =>
    all(
      times(n, (i) => [
        call(i, `f_${i.toString(16).padStart(8, "0")}`),
        say(i, "{}"),
        close(i),
      ]).flat(),
    ),
  "calls that were signed": (n) =>
    all(times(n, (i) => [call(i), say(i, "{}"), proof(i), close(i)]).flat()),
  "texts that were signed": (n) =>
    all(times(n, (i) => [open(i), say(i), proof(i), close(i)]).flat()),
  "citations of an address": (n) =>
    all(
      open(0),
      times(n, () => [say(0, "word "), cite(0, { type: "url_citation", url: "https://e" })]).flat(),
      close(0),
    ),
  "citations of a place": (n) =>
    all(
      open(0),
      times(n, () =>
        cite(0, {
          type: "url_citation",
          url: "https://e",
          title: "t",
          start_index: 0,
          end_index: 1,
        }),
      ),
      say(0),
      close(0),
    ),
  "citations of a passage": (n) =>
    all(
      open(0),
      times(n, () =>
        cite(0, { type: "web_search_result_location", url: "https://e", cited_text: "x" }),
      ),
      say(0),
      close(0),
    ),
  likelihoods: (n) =>
    all(
      open(0),
      times(n, () => ({ ...say(0), logprobs: [{ token: "x", logprob: 0 }] }) as ModelEvent),
      close(0),
    ),
  "likelihoods all at once": (n) =>
    all(
      open(0),
      { ...say(0), logprobs: times(n, () => ({ token: "x", logprob: 0 })) } as ModelEvent,
      close(0),
    ),
  "likelihoods of many blocks": (n) =>
    all(
      times(n, (i) => [
        open(i),
        { ...say(i), logprobs: [{ token: "x", logprob: 0 }] } as ModelEvent,
        close(i),
      ]).flat(),
    ),
  "many pictures": (n) =>
    all(
      times(n, (i): ModelEvent[] => [
        { type: "open", index: i, block: { type: "image" } },
        { type: "media", index: i, media: { base64: "iVBORw0KGgo=", mime: "image/png" } },
        close(i),
      ]).flat(),
    ),
  "many drafts": (n) =>
    all(
      { type: "open", index: 0, block: { type: "image" } },
      times(n, (): ModelEvent => ({
        type: "media",
        index: 0,
        media: { base64: "iVBORw0KGgo=" },
        partial: true,
      })),
      { type: "media", index: 0, media: { base64: "iVBORw0KGgo=" } },
      close(0),
    ),
  ...Object.fromEntries(
    ["chat-completions", "messages", "responses", "gemini"].map((origin) => [
      `what the hosted tools of ${origin} did`,
      (n: number) =>
        all(
          times(n, (i): ModelEvent[] => [
            {
              type: "open",
              index: i,
              block: { type: "opaque", origin, raw: { type: "web_search_call", id: `w${i}` } },
            },
            close(i),
          ]).flat(),
        ),
    ]),
  ),
  "pictures of an imitator": (n) =>
    all(
      times(n, (i): ModelEvent[] => [
        {
          type: "open",
          index: i,
          block: { type: "opaque", origin: "chat-completions", raw: { images: [{ n: i }] } },
        },
        close(i),
      ]).flat(),
    ),
};
