import type { OpenBlock } from "../../../../plugin/index.ts";
import { object } from "../../../json.ts";
import { call } from "./call.ts";
import { hosted, picture } from "./hosted.ts";
import type { OutputContext, Item } from "./item.ts";
import { message } from "./message.ts";
import { reasoning } from "./reasoning.ts";

export { carrier, type OutputContext, type Item } from "./item.ts";

/** Undefined: this wire has nothing that says it. */
export function itemFor(block: OpenBlock, index: number, desk: OutputContext): Item | undefined {
  switch (block.type) {
    case "text":
    case "refusal":
      return message(index, desk);
    case "reasoning":
      return reasoning(block.summary === true, index, desk);
    case "call":
      return call(block, index, desk);
    case "image":
      return picture(index, desk);
    case "opaque":
      return hosted(block.origin, object(block.raw) ?? {}, index, desk);
    case "audio":
      desk.to.lose("output.audio", "dropped");
      return undefined;
  }
}
