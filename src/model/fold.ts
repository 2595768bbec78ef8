import type { Finish, ModelAnswer, ModelEvent } from "./event.ts";
import type { Block, Media, Proof, WorkItem } from "./request.ts";
import { mergeUsage, type Usage } from "./usage.ts";
import type { Json } from "./values.ts";
import { fail } from "./error.ts";

/** A block while it is being folded. */
interface Growing {
  open: Extract<ModelEvent, { type: "open" }>["block"];
  text: string[];
  media: Media | undefined;
  note: string | undefined;
  proof: Proof | undefined;
  citations: Json[];
  logprobs: Json[];
}

/** Folds events into the answer they spell. Blocks keep the order in which they were opened. */
export function folding(): { event(e: ModelEvent): void; answer(): ModelAnswer } {
  const blocks = new Map<number, Growing>();
  const items = new Map<number, WorkItem>();
  let id: string | undefined;
  let usage: Usage = {};
  let finish: Finish | undefined;
  const at = (index: number): Growing =>
    blocks.get(index) ?? fail("upstream", `An event names block ${index}, which is not open.`);
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
      ...(items.size > 0 && { items: inOrder(items) }),
      usage,
      finish:
        finish ?? fail("upstream", "The answer ended before its finish.", { code: "truncated" }),
    }),
  };
}

const inOrder = (items: ReadonlyMap<number, WorkItem>): readonly WorkItem[] =>
  [...items].toSorted(([a], [b]) => a - b).map(([, item]) => item);

/** The answer that these events spell. Throws when they end before a finish. */
export function fold(events: Iterable<ModelEvent>): ModelAnswer {
  const f = folding();
  for (const e of events) f.event(e);
  return f.answer();
}

function toBlock(growing: Growing): Block {
  const { open, text, media, note, proof, citations, logprobs } = growing;
  // A half of a character that came without the other one is no text to readers in other languages.
  const said = text.join("").toWellFormed();
  const signed = proof && { proof };
  const weighed = logprobs.length > 0 && { logprobs };
  switch (open.type) {
    case "text":
      return {
        type: "text",
        text: said,
        ...(citations.length > 0 && { citations }),
        ...weighed,
        ...signed,
      };
    case "refusal":
      return { type: "refusal", text: said, ...weighed, ...signed };
    case "reasoning":
      return open.summary
        ? { type: "reasoning", summary: said === "" ? [] : [said], ...signed }
        : { type: "reasoning", text: said, ...signed };
    case "call":
      return { ...open, args: said, ...signed };
    case "image":
    case "audio":
      return { type: open.type, media: media ?? { base64: "" }, ...(note && { note }), ...signed };
    case "opaque":
      return { ...open, ...(said && { text: said }), ...signed };
  }
}
