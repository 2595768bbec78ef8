// A client's words in the common vocabulary.
import type { ModerationRequest } from "../../../model/request.ts";
import type { Body, Json } from "../../../model/values.ts";
import { present, text } from "../../json.ts";
import { unknownIn } from "../../strangers.ts";
import { knows } from "../words.ts";

export const request = (body: Body): ModerationRequest =>
  present({
    kind: "moderation" as const,
    model: text(body["model"]) ?? "",
    stream: false,
    input: body["input"] as Json,
    user: text(body["user"]),
    rest: unknownIn(body, (name) => body[name] === null || knows(name)),
    ext: {},
  });
