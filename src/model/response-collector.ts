import type { Finish, ModelResponse, ModelEvent } from "./event.ts";
import type { Block, Media, Proof, ResponseItem } from "./request.ts";
import { mergeUsage, type Usage } from "./usage.ts";
import type { Json } from "./values.ts";
import { fail } from "./error.ts";

/** A block that is being collected. */
interface PartialBlock {
  open: Extract<ModelEvent, { type: "open" }>["block"];
  text: string[];
  media: Media | undefined;
  note: string | undefined;
  proof: Proof | undefined;
  citations: Json[];
  logprobs: Json[];
}

/**
 * Creates a collector that combines events into a response. Blocks keep the order in which they
 * were opened.
 */
export function createResponseCollector(): { event(e: ModelEvent): void; answer(): ModelResponse } {
  const blocks = new Map<number, PartialBlock>();
  const items = new Map<number, ResponseItem>();
  let id: string | undefined;
  let usage: Usage = {};
  let finish: Finish | undefined;
  const at = (index: number): PartialBlock =>
    blocks.get(index) ??
    fail("upstream", `The provider sent an event for block ${index}, which is not open.`);
  return {
    event(e) {
      switch (e.type) {
        case "start":
          id = e.id;
          return;
        case "open":
          blocks.set(e.index, {
            open: e.block,
            text: [],
            media: undefined,
            note: undefined,
            proof: undefined,
            citations: [],
            logprobs: [],
          });
          return;
        case "delta":
          at(e.index).text.push(e.text);
          for (const one of e.logprobs ?? []) at(e.index).logprobs.push(one);
          return;
        case "media":
          if (e.partial) return;
          Object.assign(at(e.index), { media: e.media, note: e.note });
          return;
        case "proof":
          at(e.index).proof = e.proof;
          return;
        case "cite":
          at(e.index).citations.push(e.citation);
          return;
        case "item":
          items.set(e.index, e.item);
          return;
        case "close":
          return;
        case "usage":
          usage = mergeUsage(usage, e.usage);
          return;
        case "finish":
          finish = e;
      }
    },
    answer: () => ({
      id,
      blocks: [...blocks.values()].map(toBlock),
      ...(items.size > 0 && { items: inIndexOrder(items) }),
      usage,
      finish:
        finish ??
        fail("upstream", "The response ended before it was complete.", { code: "truncated" }),
    }),
  };
}

const inIndexOrder = (items: ReadonlyMap<number, ResponseItem>): readonly ResponseItem[] =>
  [...items].toSorted(([a], [b]) => a - b).map(([, item]) => item);

/** Combines events into a response. Throws if they end before a finish. */
export function collectResponse(events: Iterable<ModelEvent>): ModelResponse {
  const f = createResponseCollector();
  for (const e of events) f.event(e);
  return f.answer();
}

function toBlock(growing: PartialBlock): Block {
  const { open, text, media, note, proof, citations, logprobs } = growing;
  // An unpaired surrogate is not valid text in other languages, so it is replaced.
  const content = text.join("").toWellFormed();
  const signed = proof && { proof };
  const weighed = logprobs.length > 0 && { logprobs };
  switch (open.type) {
    case "text":
      return {
        type: "text",
        text: content,
        ...(citations.length > 0 && { citations }),
        ...weighed,
        ...signed,
      };
    case "refusal":
      return { type: "refusal", text: content, ...weighed, ...signed };
    case "reasoning":
      return open.summary
        ? { type: "reasoning", summary: content === "" ? [] : [content], ...signed }
        : { type: "reasoning", text: content, ...signed };
    case "call":
      return { ...open, args: content, ...signed };
    case "image":
    case "audio":
      return { type: open.type, media: media ?? { base64: "" }, ...(note && { note }), ...signed };
    case "opaque":
      return { ...open, ...(content && { text: content }), ...signed };
  }
}
