// Fields that streaming and non-streaming responses share.
import type { FinishReason } from "../../../model/event.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";

export const responseFrame = (
  to: Pick<ResponseContext, "id" | "created" | "model">,
): JsonObject => ({
  id: `cmpl-${to.id}`,
  object: "text_completion",
  created: to.created,
  model: to.model,
});

export const choice = (text: string, finish: Json = null): JsonObject => ({
  text,
  index: 0,
  logprobs: null,
  finish_reason: finish,
});

export const formatFinishReason = (reason: FinishReason): string =>
  reason === "length" || reason === "context"
    ? "length"
    : reason === "filtered" || reason === "refusal"
      ? "content_filter"
      : "stop";
