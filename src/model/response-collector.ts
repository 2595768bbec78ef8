import type { Finish, ModelResponse, ModelEvent, OpenBlock } from "./event.ts";
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

/** Returns the events of a response, block by block. `collectResponse` is the inverse. */
export function* responseToEvents(answer: ModelResponse): Generator<ModelEvent> {
  yield { type: "start", id: answer.id };
  for (const [index, block] of answer.blocks.entries()) yield* blockToEvents(index, block);
  for (const [index, item] of (answer.items ?? []).entries()) yield { type: "item", index, item };
  yield { type: "usage", usage: answer.usage };
  yield answer.finish;
}

function* blockToEvents(index: number, block: Block): Generator<ModelEvent> {
  yield { type: "open", index, block: toOpenBlock(block) };
  const text = textOf(block);
  const logprobs = "logprobs" in block ? block.logprobs : undefined;
  if (text !== "" || logprobs) yield { type: "delta", index, text, logprobs };
  if (block.type === "image" || block.type === "audio")
    yield { type: "media", index, media: block.media, note: block.note };
  if (block.type === "text")
    for (const citation of block.citations ?? []) yield { type: "cite", index, citation };
  if (block.proof) yield { type: "proof", index, proof: block.proof };
  yield { type: "close", index };
}

function toOpenBlock(block: Block): OpenBlock {
  switch (block.type) {
    case "reasoning":
      return { type: "reasoning", summary: block.summary !== undefined };
    case "opaque":
      return { type: "opaque", origin: block.origin, raw: block.raw };
    case "call":
      return { type: "call", id: block.id, name: block.name, tool: block.tool };
    case "text":
    case "refusal":
    case "image":
    case "audio":
      return { type: block.type };
    default:
      return fail("internal", `A response cannot contain a block of type ${block.type}.`);
  }
}

function textOf(block: Block): string {
  switch (block.type) {
    case "text":
    case "refusal":
      return block.text;
    case "call":
      return block.args;
    case "reasoning":
      return block.text ?? (block.summary ?? []).join("\n\n");
    case "opaque":
      return block.text ?? "";
    default:
      return "";
  }
}
