// The official SDKs of a protocol accept every stream that is encoded here, with and without
// silences: none drops the turn, fails, or reads other text.
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { collectResponse, type ModelEvent } from "tollgate/plugin";
import { createResponseContext } from "tollgate/testing";
import { Pings } from "../../src/pipeline/response/client-response.ts";
import { answers } from "./generators/arbitrary.ts";
import { chats, TELL_ALL } from "./generators/codecs.ts";
import { GOOGLE_SDKS, kept } from "./generators/google-sdks.ts";
import { READERS } from "./generators/sdk-readers.ts";
import { trialCount } from "../kit/law-effort.ts";

/** Data sent to a client of this protocol, with a number of pings before every chunk. */
function streamed(
  id: string,
  events: readonly ModelEvent[],
  silences: readonly number[],
  all = true,
) {
  const server = chats[id]!.server!;
  const pings = new Pings(server);
  let out = "";
  let pieces = 0;
  const encoder = server.createEncoder(
    (piece) => {
      for (let i = silences[pieces++ % silences.length]!; i > 0; i--) out += pings.next();
      out += pings.isOpen ? pings.stripOpening(piece) : piece;
    },
    createResponseContext({ stream: true, body: all ? TELL_ALL : {} }),
  );
  for (const event of events) encoder.writeEvent(event);
  return out;
}

const said = (events: readonly ModelEvent[]) =>
  collectResponse(events)
    .blocks.map((block) => (block.type === "text" ? block.text : ""))
    .join("");

const silences = fc.array(fc.constantFrom(0, 0, 0, 1, 3), { minLength: 1, maxLength: 12 });
const COUNTS: ModelEvent = { type: "usage", usage: { input: 3, output: 5 } };

test.each(READERS)("%s: a stream is accepted by %s", async (id, _, reads) => {
  await fc.assert(
    fc.asyncProperty(answers({ interleaved: true }), silences, async (events, quiet) => {
      expect(await reads(streamed(id, events, quiet))).toBe(said(events));
    }),
    { numRuns: trialCount(40) },
  );
});

/** With nothing but texts of one character, sources, and log probabilities. */
const open = (index: number, type: "text" | "reasoning"): ModelEvent => ({
  type: "open",
  index,
  block: { type },
});
const delta = (index: number, text: string, more: object = {}): ModelEvent => ({
  type: "delta",
  index,
  text,
  ...more,
});
const close = (index: number): ModelEvent => ({ type: "close", index });
const START: ModelEvent = { type: "start", id: "up1", model: "up" };
const STOP: readonly ModelEvent[] = [COUNTS, { type: "finish", reason: "stop" }];
const CITED: ModelEvent = {
  type: "cite",
  index: 0,
  citation: {
    type: "url_citation",
    url_citation: { url: "https://a.example", title: "A", start_index: 0, end_index: 1 },
  },
};
const signed = (index: number): ModelEvent => ({
  type: "proof",
  index,
  proof: { origin: "gemini", kind: "after", data: "Uw==", model: "m" },
});
const LIKELY = { logprobs: [{ token: "x", logprob: -1, bytes: null, top_logprobs: [] }] };
const image = { type: "image" } as const;
const PNG: ModelEvent = { type: "media", index: 1, media: { mime: "image/png", base64: "AA==" } };

const CASES: { readonly [name: string]: readonly ModelEvent[] } = {
  "one letter": [open(0, "text"), delta(0, "a"), close(0)],
  "one letter of two units": [open(0, "text"), delta(0, "🌍"), close(0)],
  "letters alone": [open(0, "text"), ..."Hej!".split("").map((one) => delta(0, one)), close(0)],
  "two texts": [open(0, "text"), delta(0, "a"), close(0), open(1, "text"), delta(1, "b"), close(1)],
  sources: [open(0, "text"), delta(0, "ab"), CITED, close(0)],
  "sources of one letter": [open(0, "text"), delta(0, "a"), CITED, close(0)],
  likelihoods: [open(0, "text"), delta(0, "ab", LIKELY), delta(0, "", LIKELY), close(0)],
  "likelihoods before words": [open(0, "text"), delta(0, "", LIKELY), delta(0, "ab"), close(0)],
  "signed words": [open(0, "text"), delta(0, "ab"), signed(0), close(0)],
  "a thought alone, shown": [open(0, "reasoning"), delta(0, "Hm"), close(0)],
  "a picture": [
    open(0, "text"),
    delta(0, "A dot."),
    close(0),
    { type: "open", index: 1, block: image },
    PNG,
    close(1),
  ],
};

test.each(
  GOOGLE_SDKS.flatMap((sdk) => Object.keys(CASES).map((name) => [sdk.name, name] as const)),
)("gemini: %s keeps %s", (sdk, name) => {
  const events = [START, ...CASES[name]!, ...STOP];
  for (const quiet of [0, 2]) {
    const stream = streamed("gemini", events, [quiet]);
    expect(
      kept(
        GOOGLE_SDKS.find((one) => one.name === sdk)!,
        stream,
      ),
    ).toBe(said(events));
  }
});

test("gemini: sources, log probabilities, and signatures are sent with their text", () => {
  const events = [
    START,
    open(0, "text"),
    delta(0, "ab", LIKELY),
    delta(0, "", LIKELY),
    CITED,
    signed(0),
    close(0),
    ...STOP,
  ];
  const chunks = streamed("gemini", events, [0])
    .split("\n\n")
    .filter(Boolean)
    .map((event) => JSON.parse(event.slice(6)));
  expect(chunks).toHaveLength(1);
  expect(chunks[0].candidates).toEqual([
    {
      content: { role: "model", parts: [{ text: "ab", thoughtSignature: "Uw==" }] },
      index: 0,
      finishReason: "STOP",
      logprobsResult: {
        chosenCandidates: [
          { token: "x", logProbability: -1 },
          { token: "x", logProbability: -1 },
        ],
        topCandidates: [{ candidates: [] }, { candidates: [] }],
      },
      groundingMetadata: {
        groundingChunks: [{ web: { uri: "https://a.example", title: "A" } }],
        groundingSupports: [{ segment: { endIndex: 1 }, groundingChunkIndices: [0] }],
      },
    },
  ]);
});

test("gemini: a response without parts has one empty text, like Google's", () => {
  const stream = streamed("gemini", [START, ...STOP], [0], false);
  for (const sdk of GOOGLE_SDKS.filter(({ name }) => /3$|2 and 3|genai 1$/.test(name)))
    expect(kept(sdk, stream)).toBe("");
});
