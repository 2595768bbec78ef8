// Options of background responses, and the routes of stored responses: those of the gateway, and
// those of providers.
import type {
  Context,
  LedgerEntry,
  RequestHead,
  Route,
  RouteInput,
  RouteResponse,
} from "tollgate/plugin";
import { fail } from "tollgate/plugin";
import { failResponse } from "tollgate/protocols/responses";
import { openaiPaths } from "../route-paths.ts";
import { BackgroundResponses, type FoundResponse } from "./background-responses.ts";

const MIB = 1024 * 1024;

export const backgroundOption = {
  type: "object",
  additionalProperties: false,
  description:
    "Settings for responses that run in the background. Their content is stored, encrypted. Default: background requests are rejected",
  properties: {
    dir: {
      type: "string",
      "x-path": true,
      minLength: 1,
      description:
        "Folder for the content of background responses, relative to gateway.yaml. Gateways with one store serve the responses of each other if this folder is on a shared disk. Default: a folder of this gateway in state_dir",
    },
    keep_minutes: {
      type: "integer",
      minimum: 1,
      maximum: 43_200,
      default: 60,
      description: "How long a response is stored after it has ended, in minutes",
    },
    max_response_mb: {
      type: "integer",
      minimum: 1,
      maximum: 1_024,
      default: 16,
      description: "Maximum size of all events of a response, in MiB. A larger response fails",
    },
    native: {
      type: "boolean",
      default: false,
      description:
        "Whether providers that have a background mode run the requests, unless a request is streamed. Otherwise the gateway runs them",
    },
    max_responses: {
      type: "integer",
      minimum: 1,
      maximum: 10_000,
      default: 1_000,
      description: "Maximum number of stored responses of an account, or of a key without one",
    },
  },
} as const;

interface BackgroundSettings {
  readonly dir?: string | undefined;
  readonly keep_minutes: number;
  readonly max_response_mb: number;
  readonly max_responses: number;
  readonly native: boolean;
}

export const createBackground = (
  { dir, keep_minutes, max_response_mb, max_responses, native }: BackgroundSettings,
  ctx: Context,
): BackgroundResponses =>
  new BackgroundResponses(ctx, {
    dir,
    keepMs: keep_minutes * 60_000,
    maxResponseBytes: max_response_mb * MIB,
    maxResponses: max_responses,
    isNative: native,
  });

/** Returns the ledger entry of a response that a provider stores. */
export type FindLedgerEntry = (x: RequestHead, id: string) => Promise<LedgerEntry | undefined>;

/** Serves an operation on a background response. */
type ServeStored = (x: RequestHead, stored: FoundResponse) => Promise<RouteResponse>;

/**
 * Creates the routes of stored responses. The gateway serves its own background responses. Every
 * other ID is sent to the provider that created the response, and only for the key that requested
 * it.
 */
export function storedResponseRoutes({
  background,
  findEntry,
}: {
  readonly background: BackgroundResponses | undefined;
  readonly findEntry: FindLedgerEntry;
}): readonly Route[] {
  const byId = (name: string, serve: ServeStored) => ({
    actionType: "relay" as const,
    action: name,
    async readInput(x: RequestHead): Promise<RouteInput> {
      const id = x.params["id"] ?? "";
      const stored = await background?.find(x, id);
      if (stored) return { model: stored.model, answer: await serve(x, stored) };
      const entry = await findEntry(x, id);
      return {
        model: entry?.target ?? failResponse(id),
        stream: x.query.get("stream") === "true",
      };
    },
  });
  const one = openaiPaths("/responses/:id");
  return [
    { method: "GET", path: one, ...byId("retrieve", (x, stored) => stored.read(x)) },
    { method: "DELETE", path: one, ...byId("delete", (_, stored) => stored.delete()) },
    {
      method: "POST",
      path: openaiPaths("/responses/:id/cancel"),
      async handle(x) {
        const id = x.params["id"] ?? "";
        const stored = (await background?.find(x, id)) ?? failResponse(id);
        return { status: 200, body: await stored.cancel(x) };
      },
    },
    {
      method: "GET",
      path: openaiPaths("/responses/:id/input_items"),
      ...byId("input_items", async () => failInputItems()),
    },
  ];
}

const failInputItems = (): never =>
  fail("unsupported", "The input of a background response is not stored.", {
    code: "input_not_stored",
  });
