import type { OpenBlock } from "../../../../plugin/index.ts";
import { asObject } from "../../../json-values.ts";
import { callItem, hostedToolItem, imageItem } from "./tools.ts";
import type { OutputContext, OutputItem } from "./item.ts";
import { messageItem, reasoningItem } from "./message.ts";

export { proofCarrierItem, type OutputContext, type OutputItem } from "./item.ts";

/** Returns an item for a block, or undefined if this protocol has none for it. */
export function createOutputItem(
  block: OpenBlock,
  index: number,
  desk: OutputContext,
): OutputItem | undefined {
  switch (block.type) {
    case "text":
    case "refusal":
      return messageItem(index, desk);
    case "reasoning":
      return reasoningItem(block.summary === true, index, desk);
    case "call":
      return callItem(block, index, desk);
    case "image":
      return imageItem(index, desk);
    case "opaque":
      return hostedToolItem(block.origin, asObject(block.raw) ?? {}, index, desk);
    case "audio":
      desk.to.reportLoss("output.audio", "dropped");
      return undefined;
  }
}
