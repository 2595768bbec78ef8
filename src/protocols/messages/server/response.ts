import { fail } from "../../../model/error.ts";
import type { ModelResponse } from "../../../model/event.ts";
import type { Block } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { withCost } from "../../cost-in-usage.ts";
import { parseToolArguments } from "../../tool-calls.ts";
import { isNativeCitation } from "../constants.ts";
import {
  callBlock,
  proofCarrierBlock,
  formatFinish,
  message,
  namesOf,
  ownBlock,
  reasoningBlock,
  withoutTrailingCarriers,
  textBlock,
} from "./content.ts";

export function encodeResponse(answer: ModelResponse, to: ResponseContext): JsonObject {
  const named = namesOf(to);
  const cut = answer.finish.reason === "length" || answer.finish.reason === "context";
  const content = withoutTrailingCarriers(
    answer.blocks.flatMap((block) => contentOf(block, named, cut, to)),
  );
  const calls = content.some((block) => block["type"] === "tool_use");
  const refused = answer.blocks.some((block) => block.type === "refusal" && block.text !== "");
  const head = message(to, answer.usage);
  return {
    ...head,
    usage: withCost(head["usage"] as JsonObject, to),
    content,
    ...formatFinish(answer.finish, { hasCalls: calls, hasRefusal: refused }),
  };
}

function contentOf(
  block: Block,
  named: (name: string) => string,
  cut: boolean,
  to: ResponseContext,
): JsonObject[] {
  switch (block.type) {
    case "text":
    case "refusal": {
      const cites = (block.type === "text" && block.citations?.filter(isNativeCitation)) || [];
      const textBlocks = block.text === "" ? [] : [textBlock(block.text, cites)];
      return block.proof ? [...textBlocks, proofCarrierBlock(block.proof, "text")] : textBlocks;
    }
    case "reasoning": {
      const summary = block.summary !== undefined;
      const text = block.text ?? block.summary?.join("\n\n") ?? "";
      const thought = reasoningBlock(text, block.proof, summary);
      return thought ? [thought] : [];
    }
    case "call": {
      const input =
        block.tool === "custom" ? { input: block.args } : parseToolArguments(block.args);
      if (input === undefined) {
        // The output limit truncated the arguments. The rest is not a valid call, and `stop_reason`
        // shows the cause.
        if (cut) return [];
        return fail(
          "upstream",
          `The model called ${block.name} with arguments that are not JSON.`,
          {
            code: "invalid_tool_arguments",
          },
        );
      }
      const call = callBlock(block.id, named(block.name), input);
      return block.proof ? [call, proofCarrierBlock(block.proof, "call")] : [call];
    }
    case "opaque": {
      const own = ownBlock(block.origin, block.raw);
      if (own) return [own];
      if (block.text) return [textBlock(block.text)];
      break;
    }
  }
  to.reportLoss(`content.${block.type}`, "dropped");
  return [];
}
