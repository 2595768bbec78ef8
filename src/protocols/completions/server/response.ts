// Encodes a non-streaming response.
import type { ModelResponse } from "../../../model/event.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { usageTo } from "../usage.ts";
import { choice, responseFrame, formatFinishReason } from "./response-common.ts";

export const encodeResponse = (answer: ModelResponse, to: ResponseContext): JsonObject => ({
  ...responseFrame(to),
  choices: [
    choice(
      answer.blocks.map((block) => (block.type === "text" ? block.text : "")).join(""),
      formatFinishReason(answer.finish.reason),
    ),
  ],
  usage: usageTo(answer.usage),
});
