// Client secrets of the Realtime API. A server requests one with its key, and gives it to a browser,
// which connects with it. The secret contains the settings of the session.
import { randomUUID } from "node:crypto";
import {
  createClientSecret,
  fail,
  type Body,
  type Context,
  type Json,
  type JsonObject,
  type RequestHead,
  type RouteResponse,
} from "tollgate/plugin";

/** Lifetimes of a secret, in seconds. */
const LIFETIME = { default: 600, min: 10, max: 7_200 };

type Session = JsonObject & { readonly type: SessionType; readonly model: string };
type SessionType = "realtime" | "transcription";

/** Creates a client secret for the key of the request. */
export function createRealtimeSecret(
  ctx: Pick<Context, "deriveSecret">,
  x: RequestHead,
  body: Body,
): RouteResponse {
  const session = readSession(body["session"]);
  const seconds = readLifetime(body["expires_after"]);
  const expiresAt = Math.floor(Date.now() / 1_000) + seconds;
  const data = session;
  const value = createClientSecret(ctx, x, { expiresAt: expiresAt * 1_000, data });
  const id = `sess_${randomUUID().replaceAll("-", "")}`;
  return {
    status: 200,
    headers: { "cache-control": "no-store" },
    body: {
      value,
      expires_at: expiresAt,
      session: { id, object: OBJECTS[session.type], ...session },
    },
  };
}

const OBJECTS: Readonly<Record<SessionType, string>> = {
  realtime: "realtime.session",
  transcription: "realtime.transcription_session",
};

/**
 * Returns the session of the client's secret. Undefined if the client presented a key. Throws the
 * fault for the client if the URL names another model.
 */
export function grantedSession({ identity, query }: RequestHead): Session | undefined {
  const session = identity?.clientSecret?.data as Session | undefined;
  if (!session) return undefined;
  const model = query.get("model") ?? query.get("deployment") ?? session.model;
  if (model !== session.model)
    fail("forbidden", `The client secret is for the model "${session.model}".`, {
      code: "model_fixed",
      param: "model",
    });
  return session;
}

/** Throws the fault for the client if the URL of its WebSocket is for another type of session. */
export function checkIntent({ query }: RequestHead, { type }: Session): void {
  if ((query.get("intent") ?? "realtime") !== type)
    fail(
      "invalid",
      type === "transcription"
        ? "The client secret is for transcription. Connect to /v1/realtime?intent=transcription."
        : "The client secret is not for transcription. Connect without `intent`.",
      { code: "session_fixed", param: "intent" },
    );
}

function readSession(given: unknown): Session {
  const session = asObject(given) ?? {};
  const { type = "realtime", model } = session;
  if (type !== "realtime" && type !== "transcription")
    return fail("invalid", '`session.type` must be "realtime" or "transcription".', {
      code: "invalid_value",
      param: "session.type",
    });
  if (typeof model !== "string" || model === "")
    return fail(
      "invalid",
      "Missing model. Send `session.model`, such as openai/gpt-realtime-2.1.",
      {
        code: "missing_model",
        param: "session.model",
      },
    );
  return { ...session, type, model };
}

function readLifetime(given: unknown): number {
  const { anchor = "created_at", seconds = LIFETIME.default } = asObject(given) ?? {};
  if (anchor !== "created_at")
    fail("invalid", '`expires_after.anchor` must be "created_at".', {
      code: "invalid_value",
      param: "expires_after.anchor",
    });
  const { min, max } = LIFETIME;
  if (!Number.isInteger(seconds) || (seconds as number) < min || (seconds as number) > max)
    fail("invalid", `\`expires_after.seconds\` must be a whole number from ${min} to ${max}.`, {
      code: "invalid_value",
      param: "expires_after.seconds",
    });
  return seconds as number;
}

const asObject = (value: unknown): { readonly [name: string]: Json } | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as { readonly [name: string]: Json })
    : undefined;
