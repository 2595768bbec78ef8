// Sets up calls over WebRTC: a form with the offer of the client's browser, and the session.
import { fail } from "../../model/error.ts";
import type { HeadersIn, JsonObject, Opt } from "../../model/values.ts";
import type { CallRequest, CallSetup } from "../../plugin/socket.ts";
import { asText, parseObject } from "../json-values.ts";
import { checkGranted, mergeSettings } from "./granted-session.ts";

const SDP = "application/sdp";

export const realtimeCalls: CallSetup = {
  async readRequest({ contentType, body, query, session: granted }) {
    const { sdp, session: own } = await readForm({ contentType, body });
    if (granted) checkCall(own, granted);
    const session = granted ? mergeSettings(granted, own) : own;
    const model = asText(session["model"]) ?? query.get("model") ?? "";
    if (model === "")
      fail("invalid", "Missing model. Send the session with a model, next to the offer.", {
        param: "session.model",
        code: "missing_model",
      });
    return {
      model,
      encode: (name) => encodeForm(sdp, withModel(session, name)),
    };
  },
  callId: callIdOf,
};

/** Throws the fault for the client if its session exceeds the granted session. */
function checkCall(own: JsonObject, granted: JsonObject): void {
  if ((own["model"] ?? granted["model"]) !== granted["model"])
    fail("forbidden", `The client secret is for the model "${asText(granted["model"]) ?? ""}".`, {
      param: "session.model",
      code: "model_fixed",
    });
  checkGranted(own, granted);
}

/** Sets the provider's name of the model. A session that only transcribes has no model. */
function withModel({ model: _, ...session }: JsonObject, name: string): JsonObject {
  return session["type"] === "transcription"
    ? session
    : { type: "realtime", ...session, model: name };
}

/** Paths of calls below the base URL of a provider. */
export const CALL_PATHS = {
  path: "/realtime/calls",
  observePath: (call: string) => `/realtime?call_id=${encodeURIComponent(call)}`,
  hangUpPath: (call: string) => `/realtime/calls/${encodeURIComponent(call)}/hangup`,
};

function callIdOf({ location }: HeadersIn): Opt<string> {
  const address = Array.isArray(location) ? location[0] : location;
  return /\/calls\/([\w-]{1,128})$/.exec(address ?? "")?.[1];
}

async function readForm({
  contentType,
  body,
}: CallRequest): Promise<{ sdp: string; session: JsonObject }> {
  if (contentType.startsWith(SDP)) return { sdp: body.toString(), session: {} };
  const form = await new Response(new Uint8Array(body), {
    headers: { "content-type": contentType },
  })
    .formData()
    .catch(() => undefined);
  const sdp = await textOf(form?.get("sdp"));
  if (sdp === undefined)
    return fail("invalid", "The body must be a form with `sdp` and `session`.", {
      param: "sdp",
      code: "invalid_call",
    });
  const text = await textOf(form!.get("session"));
  const session = text === undefined ? {} : parseObject(text);
  if (!session)
    return fail("invalid", "`session` must be a JSON object.", {
      param: "session",
      code: "invalid_call",
    });
  return { sdp, session };
}

const textOf = async (part: File | string | null | undefined): Promise<string | undefined> =>
  part === null || part === undefined ? undefined : typeof part === "string" ? part : part.text();

async function encodeForm(sdp: string, session: JsonObject): Promise<CallRequest> {
  const form = new FormData();
  form.append("sdp", new Blob([sdp], { type: SDP }));
  form.append("session", new Blob([JSON.stringify(session)], { type: "application/json" }));
  const made = new Response(form);
  return {
    contentType: made.headers.get("content-type")!,
    body: Buffer.from(await made.arrayBuffer()),
  };
}
