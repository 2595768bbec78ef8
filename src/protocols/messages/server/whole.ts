import { fail } from "../../../model/error.ts";
import type { ModelAnswer } from "../../../model/event.ts";
import type { Block } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import { inputOf } from "../../arguments.ts";
import { isNativeCitation } from "../words.ts";
import {
  callBlock,
  carried,
  ending,
  message,
  namesOf,
  ownBlock,
  reasoningBlock,
  spokenLast,
  textBlock,
} from "./content.ts";

export function whole(answer: ModelAnswer, to: AnswerContext): JsonObject {
  const named = namesOf(to);
  const cut = answer.finish.reason === "length" || answer.finish.reason === "context";
  const content = spokenLast(answer.blocks.flatMap((block) => contentOf(block, named, cut, to)));
  const calls = content.some((block) => block["type"] === "tool_use");
  const refused = answer.blocks.some((block) => block.type === "refusal" && block.text !== "");
  return { ...message(to, answer.usage), content, ...ending(answer.finish, { calls, refused }) };
}

function contentOf(
  block: Block,
  named: (name: string) => string,
  cut: boolean,
  to: AnswerContext,
): JsonObject[] {
  switch (block.type) {
    case "text":
    case "refusal": {
      const cites = (block.type === "text" && block.citations?.filter(isNativeCitation)) || [];
      const said = block.text === "" ? [] : [textBlock(block.text, cites)];
      return block.proof ? [...said, carried(block.proof, "text")] : said;
    }
    case "reasoning": {
      const summary = block.summary !== undefined;
      const text = block.text ?? block.summary?.join("\n\n") ?? "";
      const thought = reasoningBlock(text, block.proof, summary);
      return thought ? [thought] : [];
    }
    case "call": {
      const input = block.tool === "custom" ? { input: block.args } : inputOf(block.args);
      if (input === undefined) {
        // The cap cut the arguments: what is left of them is no call, and stop_reason says so.
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
      return block.proof ? [call, carried(block.proof, "call")] : [call];
    }
    case "opaque": {
      const own = ownBlock(block.origin, block.raw);
      if (own) return [own];
      if (block.text) return [textBlock(block.text)];
      break;
    }
  }
  to.lose(`content.${block.type}`, "dropped");
  return [];
}
