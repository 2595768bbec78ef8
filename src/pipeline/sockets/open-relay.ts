// Connects the socket of a client to the socket of a provider. The model is resolved as for any
// request. If a provider rejects the handshake, the next candidate is tried.
import type { WebSocket } from "ws";
import { isPromise } from "../../lib/is-promise.ts";
import { fail, getFault, type Fault } from "../../model/error.ts";
import type { EndpointSocket } from "../../plugin/provider.ts";
import type { RelayInput, RelaySocketRoute } from "../../plugin/frontend.ts";
import type { SocketMessage } from "../../plugin/socket.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { HostCall } from "../exchange/call.ts";
import { clientKey } from "../exchange/client-retries.ts";
import type { ReceivedBody } from "../exchange/exchange-state.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { HostCandidate, MountedFrontend, MountedSocket } from "../exchange/mounted.ts";
import { firstApplicable } from "../hooks/hook-runner.ts";
import { route, type RoutePlan } from "../stages/route.ts";
import { recordFailure } from "../upstream/provider-failure.ts";
import { openProviderSocket, type MessageBounds } from "../upstream/provider-socket.ts";
import type { RelayTarget } from "./relayed-response.ts";

/** A provider's open socket, and the call and client that it is connected to. */
export interface OpenRelay {
  readonly target: RelayTarget;
  readonly provider: WebSocket;
}

/** Maximum number of candidates that are tried for one connection. */
const MAX_ATTEMPTS = 3;

/**
 * Opens the provider's socket for a handshake that was admitted. `first` is the first message of the
 * client, if the route needs it. Rejects with the fault for the client.
 */
export async function openRelay(
  handshake: HostExchange,
  socket: MountedSocket,
  first: SocketMessage | undefined,
  bounds: MessageBounds,
): Promise<OpenRelay> {
  const { readModel } = socket.route as RelaySocketRoute;
  const input = await readModel.call(socket.route, handshake, first);
  const session = readSession(handshake, socket);
  const { target, made } = await tryCandidates(
    handshake,
    socket,
    { ...input, session },
    (call, definition) => openProviderSocket(call, definition, bounds),
  );
  return { target, provider: made };
}

/**
 * Resolves the model, and calls `attempt` for its candidates until one succeeds. Rejects with the
 * fault of the last attempt.
 */
export async function tryCandidates<T>(
  handshake: HostExchange,
  socket: MountedSocket,
  input: RelayInput & Pick<RelayTarget, "session">,
  attempt: (call: HostCall, definition: EndpointSocket) => Promise<T>,
): Promise<{ target: RelayTarget; made: T }> {
  const { gen, body, routing } = handshake.state;
  const { action } = socket.route as RelaySocketRoute;
  body.received = receivedBody(input, action);
  const { facts, pinnedTarget } = body.received;
  const routed = route({
    gen,
    frontend: socket.frontend,
    x: handshake,
    operationSpec: handshake.operationSpec,
    facts,
    pinnedTarget,
    routing,
    admission: handshake.state.admission,
  });
  const plan = isPromise(routed) ? await routed : routed;
  const candidates = findRelays(plan, socket, action, handshake.model);
  let failure: unknown;
  for (const [i, { candidate, definition }] of candidates.slice(0, MAX_ATTEMPTS).entries()) {
    const call = new HostCall(handshake, candidate, i + 1);
    try {
      const made = await attempt(call, definition);
      gen.targetHealth.recordSuccess(candidate, call.startedAt, clientKey(handshake));
      const { resolution } = plan;
      const { model } = handshake;
      const { session } = input;
      const target = { handshake, socket, candidate, resolution, model, session };
      return { target, made };
    } catch (problem) {
      failure = problem;
      const fault = getFault(problem);
      if (!fault || handshake.state.connection.isDisconnected) break;
      recordFailure(call, fault);
      if (!plan.failoverOn.has(fault.kind)) break;
      logRefusal(call, fault);
    }
  }
  throw failure;
}

/** Returns the settings that the client's credential determines. */
export const readSession = (
  handshake: HostExchange,
  { route: socketRoute }: MountedSocket,
): Opt<JsonObject> => (socketRoute as RelaySocketRoute).readSession?.(handshake);

function logRefusal({ exchange, provider }: HostCall, { kind, code }: Fault): void {
  exchange.state.gen.log.debug(
    { request: exchange.id, provider, kind, code },
    "provider refused socket, trying next",
  );
}

/** A candidate to which a socket can be relayed. */
interface Relay {
  readonly candidate: HostCandidate;
  readonly definition: EndpointSocket;
}

/** Candidates to which a socket can be relayed, and the others with the reason. */
interface RelayChoice {
  readonly relays: readonly Relay[];
  readonly refused: readonly {
    readonly candidate: HostCandidate;
    readonly by: string;
    readonly message: string;
  }[];
}

/** Selects the candidates with a socket for the action, to which messages may pass unchanged. */
export function selectRelays(
  { candidates, otherEndpoints, resolution }: RoutePlan,
  { hooks }: MountedFrontend,
  action: string,
  model: string,
): RelayChoice {
  const all = [...candidates, ...otherEndpoints];
  const relays: Relay[] = [];
  const refused: RelayChoice["refused"][number][] = [];
  for (const candidate of all) {
    const sockets = candidate.mounted.endpoint.transport?.definition.sockets;
    const definition = sockets && Object.hasOwn(sockets, action) ? sockets[action] : undefined;
    if (!definition)
      refused.push({
        candidate,
        by: "endpoint",
        message: `its endpoint has no WebSocket for ${action}`,
      });
    else if (candidate.mode !== "passthrough")
      refused.push({
        candidate,
        by: "mode",
        message: `its messages cannot pass unchanged (${resolution.translationReasons.get(candidate) ?? "other protocol"})`,
      });
    else relays.push({ candidate, definition });
  }
  // The messages cannot be edited, so a middleware that must edit requests would be bypassed.
  const editor = relays
    .map(({ candidate }) => firstApplicable(hooks.lists.edit, model, candidate.provider))
    .find((hook) => hook !== undefined);
  if (!editor) return { relays, refused };
  const edited = relays.map(({ candidate }) => ({
    candidate,
    by: editor.id,
    message: `its messages cannot pass unchanged (${editor.id} (edit))`,
  }));
  return { relays: [], refused: [...edited, ...refused] };
}

/** Returns the candidates for a socket, or throws the fault for the client. */
function findRelays(
  plan: RoutePlan,
  { frontend }: MountedSocket,
  action: string,
  model: string,
): readonly Relay[] {
  const { relays, refused } = selectRelays(plan, frontend, action, model);
  if (relays.length > 0) return relays;
  const editor = refused.find(({ by }) => by !== "endpoint" && by !== "mode");
  const reason = editor
    ? `${editor.by} (edit)`
    : plan.resolution.translationReasons.values().next().value;
  return fail(
    "unsupported",
    `No provider of this model can relay a WebSocket of ${frontend.protocol!.id}${reason === undefined ? "" : ` (${reason})`}.`,
    { param: "model", code: "no_such_operation" },
  );
}

function receivedBody({ model, facts }: RelayInput, action: string): ReceivedBody {
  const pinned = typeof model === "string" ? undefined : model;
  const name = typeof model === "string" ? model : `${model.provider}/${model.model}`;
  return {
    raw: NO_BYTES,
    inputBytes: 0,
    spans: null,
    multipart: undefined,
    body: { model: name },
    facts: { features: [], references: [], ...facts },
    model: name,
    pinnedTarget: pinned,
    stream: true,
    actionType: "generate",
    action,
    originalBody: {},
    edits: undefined,
    record: undefined,
    answer: undefined,
    background: undefined,
    continues: undefined,
  };
}

const NO_BYTES = Buffer.alloc(0);
