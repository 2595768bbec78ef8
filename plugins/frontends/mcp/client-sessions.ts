// Sessions of clients that open one with `initialize`. The client keeps the content of its session
// as a sealed ID, so that any process of the gateway can continue it.
import { randomUUID } from "node:crypto";
import type { Context, JsonObject, RequestHead } from "tollgate/plugin";
import type { Client } from "./client.ts";
import { ClientError, isObject, RPC_ERRORS } from "./json-rpc.ts";
import { SESSION_REVISIONS, type Revision } from "./revisions.ts";
import type { Scope } from "./scopes.ts";
import type { SealedState } from "./sealed-state.ts";

/** Maximum age of a session, in milliseconds. */
const MAX_AGE_MS = 7 * 24 * 3_600_000;
/** Largest number of sessions whose settings are kept. */
const MAX_SETTINGS = 10_000;
/** Largest size of what a client states about itself, in characters of JSON. */
const MAX_PROFILE_LENGTH = 4_096;
const MAX_SUBSCRIPTIONS = 200;

/** Settings that a client changed during its session. They are lost if the gateway stops. */
interface SessionSettings {
  logLevel?: string;
  isEnded?: boolean;
  readonly subscriptions: Set<string>;
}

export class ClientSessions {
  readonly #sealed: SealedState;
  readonly #settings: Map<string, SessionSettings>;

  constructor(ctx: Context, sealed: SealedState) {
    this.#sealed = sealed;
    this.#settings = ctx.shared("session settings", () => new Map<string, SessionSettings>());
  }

  /** Opens a session. Returns its ID and the revision that both sides speak. */
  open(x: RequestHead, scope: Scope, params: JsonObject): { id: string; revision: Revision } {
    const { protocolVersion, capabilities, clientInfo } = params;
    const revision =
      SESSION_REVISIONS.find((one) => one === protocolVersion) ?? SESSION_REVISIONS[0]!;
    if (!isObject(capabilities))
      throw new ClientError(RPC_ERRORS.invalidParams, "capabilities must be an object.");
    const profile = { c: capabilities, i: isObject(clientInfo) ? clientInfo : {} };
    const isSmall = JSON.stringify(profile).length <= MAX_PROFILE_LENGTH;
    const data = {
      s: randomUUID(),
      r: revision,
      t: Date.now(),
      ...(isSmall ? profile : { c: capabilityNames(capabilities), i: {} }),
    };
    return { id: this.#sealed.seal(sessionPurpose(x, scope), data), revision };
  }

  /** Returns the client of a request in a session. */
  read(x: RequestHead, scope: Scope): Client {
    const sealed = x.headers["mcp-session-id"];
    if (typeof sealed !== "string")
      throw new ClientError(
        RPC_ERRORS.implementation,
        "Missing Mcp-Session-Id. Open a session with initialize, or send the revision in _meta.",
        { status: 400 },
      );
    const data = this.#sealed.open(sessionPurpose(x, scope), sealed);
    const sessionId = String(data?.["s"]);
    const settings = this.#settings.get(sessionId);
    if (!data || Number(data["t"]) + MAX_AGE_MS <= Date.now() || settings?.isEnded)
      throw new ClientError(
        RPC_ERRORS.sessionNotFound,
        "Session not found. Open another session with initialize.",
        { status: 404 },
      );
    const { c, i: clientInfo } = data;
    const capabilities = c as JsonObject;
    return {
      x,
      scope: { ...scope, capabilities },
      isModern: false,
      profile: {
        capabilities,
        clientInfo:
          Object.keys(clientInfo as JsonObject).length > 0 ? (clientInfo as JsonObject) : undefined,
        logLevel: settings?.logLevel,
        sessionId,
      },
    };
  }

  /** Ends a session. */
  end({ profile }: Client): void {
    this.#settingsOf(profile.sessionId).isEnded = true;
  }

  setLogLevel({ profile }: Client, level: unknown): void {
    if (typeof level !== "string" || !LOG_LEVELS.has(level))
      throw new ClientError(
        RPC_ERRORS.invalidParams,
        `level must be one of: ${[...LOG_LEVELS].join(", ")}.`,
      );
    this.#settingsOf(profile.sessionId).logLevel = level;
  }

  /** URIs of the resources whose changes the client wants to receive. */
  subscriptions({ profile }: Client): ReadonlySet<string> {
    return this.#settings.get(profile.sessionId)?.subscriptions ?? new Set();
  }

  setSubscription({ profile }: Client, uri: string, isOn: boolean): void {
    const { subscriptions } = this.#settingsOf(profile.sessionId);
    if (!isOn) subscriptions.delete(uri);
    else if (subscriptions.size < MAX_SUBSCRIPTIONS) subscriptions.add(uri);
    else
      throw new ClientError(
        RPC_ERRORS.invalidParams,
        `A session can subscribe to up to ${MAX_SUBSCRIPTIONS} resources.`,
      );
  }

  #settingsOf(sessionId: string): SessionSettings {
    const known = this.#settings.get(sessionId);
    if (known) return known;
    const settings: SessionSettings = { subscriptions: new Set() };
    this.#settings.set(sessionId, settings);
    const [oldest] = this.#settings.keys();
    if (this.#settings.size > MAX_SETTINGS) this.#settings.delete(oldest!);
    return settings;
  }
}

const LOG_LEVELS: ReadonlySet<string> = new Set([
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency",
]);

/** A session belongs to one key and one path. */
const sessionPurpose = (x: RequestHead, scope: Scope): string =>
  JSON.stringify(["session", x.identity!.id, scope.name]);

const capabilityNames = (capabilities: JsonObject): JsonObject =>
  Object.fromEntries(
    ["sampling", "elicitation", "roots"]
      .filter((name) => capabilities[name] !== undefined)
      .map((name) => [name, {}]),
  );
