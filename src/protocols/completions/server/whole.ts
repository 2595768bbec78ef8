// An answer that is one JSON text.
import type { ModelAnswer } from "../../../model/event.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import { usageTo } from "../usage.ts";
import { choice, frameOf, reasonTo } from "./saying.ts";

export const whole = (answer: ModelAnswer, to: AnswerContext): JsonObject => ({
  ...frameOf(to),
  choices: [
    choice(
      answer.blocks.map((block) => (block.type === "text" ? block.text : "")).join(""),
      reasonTo(answer.finish.reason),
    ),
  ],
  usage: usageTo(answer.usage),
});
