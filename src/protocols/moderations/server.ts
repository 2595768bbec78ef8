// The half of the moderations protocol that faces clients.
import type { ModelResponse } from "../../model/event.ts";
import type { ModerationRequest, ModerationResult } from "../../model/request.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { ResponseContext } from "../../plugin/protocol.ts";
import { omitUndefined, asText } from "../json-values.ts";
import { unknownTopLevelFields } from "../unknown-fields.ts";

const COMMON_FIELDS: readonly string[] = ["model", "input", "stream", "user"];

export const knowsField = (field: string): boolean => COMMON_FIELDS.includes(field);

export const decodeRequest = (body: Body): ModerationRequest =>
  omitUndefined({
    operation: "moderation" as const,
    model: asText(body["model"]) ?? "",
    stream: false,
    input: body["input"] as Json,
    user: asText(body["user"]),
    rest: unknownTopLevelFields(body, (name) => body[name] === null || knowsField(name)),
    ext: {},
  });

/**
 * Encodes a response. Each result keeps its vendor's categories, because categories differ between
 * vendors.
 */
export const encodeResponse = (
  { id, items = [], usage: { input } }: ModelResponse,
  to: Pick<ResponseContext, "id" | "model">,
): JsonObject => ({
  id: id ?? `modr-${to.id}`,
  model: to.model,
  results: (items as readonly ModerationResult[]).map(({ raw }) => raw),
  // Most vendors report no counts.
  ...(input !== undefined && { usage: { prompt_tokens: input, total_tokens: input } }),
});
