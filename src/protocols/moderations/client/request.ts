// Encodes a request in this protocol.
import type { ModerationRequest } from "../../../model/request.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { omitUndefined } from "../../json-values.ts";

export const encodeRequest = (r: ModerationRequest, of: Pick<CallContext, "model">): Body =>
  omitUndefined({ model: of.model, input: r.input, user: r.user });
