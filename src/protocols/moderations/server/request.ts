// Decodes a client's request into the common form.
import type { ModerationRequest } from "../../../model/request.ts";
import type { Body, Json } from "../../../model/values.ts";
import { omitUndefined, asText } from "../../json-values.ts";
import { unknownTopLevelFields } from "../../unknown-fields.ts";
import { knowsField } from "../constants.ts";

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
