// Holds the current generation, and older generations until their last exchange has ended. A new
// generation is complete before it is swapped in, and an old generation stops only after that.
import type { IncomingMessage, ServerResponse } from "node:http";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { listSecrets } from "../../config/show-config.ts";
import type { GatewayConfig, LocatedProblem, AdminConfig } from "../../config/gateway-config.ts";
import type { HealthState } from "../../plugin/gateway-stats.ts";
import type { RejectedRequest } from "../../plugin/observer.ts";
import type { Generation } from "../../pipeline/generation.ts";
import { isApiPath } from "../access/principal.ts";
import { listenAdmin } from "../access/admin-listener.ts";
import {
  createNodeHandler,
  createExactRouteHandler,
  createHealthResponder,
} from "../http/h3-adapter.ts";
import type { AppOptions, OnRejected } from "../http/generation-app.ts";
import { buildGeneration, type BuiltGeneration } from "./build-generation.ts";
import { healthStateOf } from "../services/ledger-availability.ts";
import { startRetention } from "../ledger/ledger-retention.ts";
import { answerPeerRequest } from "../services/peer-gateways.ts";
import type { Services } from "../services.ts";
import type { Rejection } from "../http/request-guard.ts";
import { type BoundAddress, toListenTarget } from "../http/listen-targets.ts";
import {
  listen,
  type ListenerHandle,
  type ListenOptions,
  type RejectedClient,
} from "../http/listener.ts";
import { createSocketLookup, type FindSocket } from "../sockets/socket-routes.ts";
import { SocketServer } from "../sockets/socket-server.ts";
import type { OpenSockets } from "../sockets/open-sockets.ts";
import type { GatewayStatus } from "../gateway-api.ts";
import { isLoopback } from "../../lib/net/egress-guard.ts";
import { fail } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/store/account.ts";
import type { Store } from "../../plugin/store/store.ts";
import { listAllKeys } from "../store-keys.ts";

// Throws if other machines can reach the admin listener and no admin exists. Otherwise the first
// client could make itself admin.
async function assertAdminExists(
  { address, behindProxy, tokens, oidc }: AdminConfig,
  store: Pick<Store, "listKeys">,
): Promise<void> {
  // With a loopback address or a Unix socket, the user who can open the control socket owns the
  // gateway.
  if (!behindProxy && ("socket" in address || isLoopback(address.host))) return;
  if (oidc || tokens.length > 0 || (await listAllKeys(store)()).some(isAdmin)) return;
  fail(
    "conflict",
    "The admin listener is reachable from other machines, but no admin exists. Create " +
      "one with `tollgate admins create <name> --role owner`, or configure one under " +
      "admin.tokens.",
    { code: "no_admin" },
  );
}
const isAdmin = ({ admin, revoked }: KeyRecord): boolean =>
  admin !== undefined && revoked === undefined;

/** Time in milliseconds in which WebSockets are closed before connections are cut. */
const SOCKET_CLOSE_MS = 2_000;

/** A generation with the routes that lead to it. */
export interface LiveGeneration {
  readonly built: BuiltGeneration;
  readonly config: GatewayConfig;
  readonly loaded: LoadedConfig;
  readonly handler: ListenOptions["handler"];
  /** Handler of the admin listener. */
  readonly adminHandler: ListenOptions["handler"];
  readonly findSocket: FindSocket;
  readonly loadedAt: number;
}

export class GenerationSlot {
  readonly #services: Services;
  readonly #retired = new Set<BuiltGeneration>();
  #current: LiveGeneration | undefined;
  #listener: ListenerHandle | undefined;
  readonly #sockets: SocketServer;
  #draining = false;
  /** When `drain` was called, on the monotonic clock. */
  #drainedSince = -Infinity;
  #isOpen = false;
  #readyzWasQueried = false;

  constructor(services: Services) {
    this.#services = services;
    this.#sockets = new SocketServer(services, () => ({
      gen: this.current.built.gen,
      findSocket: this.current.findSocket,
      maxMessageBytes: this.current.config.bounds.socketMessageBytes,
    }));
    const { open } = this.#sockets;
    services.keyCache.onInvalidated(() => void open.checkKeys());
    services.accountCache.onChanged(() => void open.checkKeys());
  }

  /** Open WebSockets of this process. */
  get sockets(): OpenSockets {
    return this.#sockets.open;
  }

  /** State that `/readyz`, `status`, the console, and metrics report. */
  get state(): HealthState {
    const { outage } = this.#services.ledgerAvailability;
    return healthStateOf({ draining: this.#draining, open: this.#isOpen, trouble: outage });
  }

  /** Marks that clients can connect, in this process or in a worker. */
  markOpen(): void {
    this.#isOpen = true;
  }

  /**
   * Makes `/readyz` report the shutdown while all requests are still served. Returns whether
   * `/readyz` was queried before. If it was, a load balancer must see the change before the port
   * closes.
   */
  announceShutdown(): boolean {
    this.#draining = true;
    this.#listener?.announceClose();
    return this.#readyzWasQueried;
  }

  /**
   * Reports that no new clients are accepted, so that plugins can end long-running work such as
   * streams. `isReported`: whether `/readyz` reports it too. If another process serves new clients,
   * open WebSockets stay until shortly before the end of the drain time.
   */
  drain(isReported = true): void {
    this.#draining ||= isReported;
    this.#drainedSince = performance.now();
    this.#current?.built.signalLeave();
    const { open } = this.#sockets;
    if (isReported) open.drain();
    else open.drainAfter(this.current.config.shutdown.timeoutMs - SOCKET_CLOSE_MS);
  }

  /** The current generation. Undefined before the first swap, despite its type. */
  get current(): LiveGeneration {
    return this.#current!;
  }

  /**
   * Opens the public port. Each request is served by the generation that is current when it
   * arrives. `boundAddress` overrides the address from gateway.yaml.
   */
  async listen(boundAddress: readonly (BoundAddress | undefined)[] = []): Promise<ListenerHandle> {
    const { config } = this.current;
    this.markOpen();
    const [first, ...also] = await Promise.all(
      config.listen.map((each, i) => toListenTarget(each, boundAddress[i])),
    );
    const listening = await listen({
      ...first!,
      additionalTargets: also,
      limits: socketLimitsOf(config),
      handler: (req, res) => this.current.handler(req, res),
      upgrade: (req, socket, head) => this.#sockets.accept(req, socket, head),
      onRejected: (refusal, who) => this.#onConnectionRejected("public", refusal, who),
    });
    for (const [i, { tls }] of config.listen.entries()) {
      if (!tls) continue;
      const { watchCertificate } = await import("../http/tls.ts");
      watchCertificate(listening.servers[i]!, tls, { key: "listen.tls", log: this.#services.log });
    }
    return (this.#listener = listening);
  }

  /**
   * Opens the admin listener. Returns undefined if gateway.yaml configures none. `fd`: an open
   * descriptor that is used instead of the address.
   */
  async listenAdmin(
    api: { serve(req: IncomingMessage, res: ServerResponse): Promise<void> },
    fd?: number,
  ): Promise<ListenerHandle | undefined> {
    const { admin } = this.current.config;
    if (admin) await assertAdminExists(admin, this.#services.store);
    return (
      admin &&
      listenAdmin(admin, {
        fd,
        log: this.#services.log,
        handler: (req, res) =>
          isApiPath((req.url ?? "/").split("?", 1)[0]!)
            ? void api.serve(req, res)
            : this.current.adminHandler(req, res),
        onRejected: (refusal, who) => this.#onConnectionRejected("admin", refusal, who),
      })
    );
  }

  /** Number of open client requests in this process. */
  get inFlight(): number {
    // The listener counts an open WebSocket as one request. Only the responses on the WebSocket are
    // requests.
    const { count, running } = this.#sockets.open;
    return (this.#listener?.inFlight() ?? 0) - count + running;
  }

  /** Returns the open requests per frontend, over the current and the retired generations. */
  inFlightByFrontend(): Readonly<Record<string, number>> {
    const sum: Record<string, number> = {};
    for (const { frontends, inFlightOfFrontend } of [this.current.built, ...this.#retired])
      // A frontend with several protocols appears once per protocol.
      for (const name of new Set(frontends.map((frontend) => frontend.name)))
        sum[name] = (sum[name] ?? 0) + inFlightOfFrontend(name);
    return sum;
  }

  /** Answers a query from another gateway on the store with data of any process of this gateway. */
  #answerPeer(question: Buffer): Promise<Buffer | undefined> {
    const { fleetSecret, pluginPeers } = this.#services;
    return answerPeerRequest(
      fleetSecret,
      question,
      async (id, of) => (await pluginPeers.handle(id, of)) ?? pluginPeers.ask(id, of, true),
    );
  }

  /** Called when the listener rejects a request before it is routed. */
  #onConnectionRejected(
    listener: RejectedRequest["listener"],
    { code, status }: Rejection,
    who: RejectedClient,
  ): void {
    const { id, address, method } = who;
    this.#recordRejection(listener, { id, status, code, method });
    this.#services.log.debug(
      { code, status, address, listener },
      "request rejected before routing",
    );
  }

  #recordRejection(
    listener: RejectedRequest["listener"],
    refusal: Parameters<OnRejected>[0],
  ): void {
    this.#services.rejections.count(refusal.code);
    this.#services.observerSink.reportRejection({ at: wallClock(), listener, ...refusal });
  }

  /** Starts the retention of ledger rows. The period is read from the current config each time. */
  startRetention(scope: LifetimeScope): void {
    startRetention(this.#services, () => this.current.config.ledger.retentionMs, scope);
  }

  async build(of: {
    number: number;
    loaded: LoadedConfig;
    config: GatewayConfig;
    probesProviders?: boolean;
    ownsObservers?: boolean;
  }): Promise<LiveGeneration | { problems: readonly LocatedProblem[] }> {
    const { loaded, config } = of;
    this.#services.log.addSecrets(listSecrets(config));
    const built = await buildGeneration({ ...of, services: this.#services, locate: loaded.locate });
    if ("problems" in built) return built;
    return {
      built,
      config,
      loaded,
      handler: createNodeHandler({
        exactRoute: createExactRouteHandler(built.gen, built.frontends),
        answerHealth: createHealthResponder(() => this.#ready(), false),
        loadRoutes: routesOf({
          gen: built.gen,
          frontends: built.frontends,
          onRejected: (refusal) => this.#recordRejection("public", refusal),
          files: this.#services.fileStore,
          answerPeer: (question) => this.#answerPeer(question),
        }),
      }),
      adminHandler: this.#createAdminHandler(built),
      findSocket: createSocketLookup(built.sockets),
      loadedAt: wallClock(),
    };
  }

  /**
   * Creates the handler for admin clients. Their requests are not client requests, so they are not
   * reported to observers.
   */
  #createAdminHandler({
    gen,
    adminFrontends: frontends,
  }: BuiltGeneration): ListenOptions["handler"] {
    const quiet: Generation = { ...gen, reportRequest: undefined };
    const refused: OnRejected = (refusal) => this.#recordRejection("admin", refusal);
    return createNodeHandler({
      answerHealth: createHealthResponder(() => this.#ready(), true),
      loadRoutes: routesOf({ gen: quiet, frontends, onRejected: refused, admin: true }),
    });
  }

  swap(serving: LiveGeneration): void {
    const old = this.#current?.built;
    this.#current = serving;
    this.#services.observerSink.attach(serving.built.observers);
    this.#services.jobRegistry.current = serving.built.jobs;
    this.#services.log.setLevel(serving.config.log.level);
    const { lifetimeMs: ttlMs, maxTotalBytes: maxBytes, ...sizes } = serving.config.files;
    this.#services.fileStore.setLimits({ ttlMs, maxBytes, ...sizes });
    this.#services.requestHistory?.recentRequests.setCapacity(serving.config.requestHistory);
    this.#listener?.setLimits(socketLimitsOf(serving.config));
    this.#services.admissionQueue.setLimits(serving.config.overload);
    this.#services.memoryBudget.setLimit(serving.config.bounds.inFlightBytes);
    if (!old) return void this.#services.thresholds?.deliverUndelivered();
    this.#retired.add(old);
    void old.retire().then(() => {
      this.#retired.delete(old);
      this.#services.log.debug({ generation: old.gen.number }, "config generation ended");
    });
  }

  /** Returns the generations, the current one first. */
  generations(): GatewayStatus["generations"] {
    return [this.current.built, ...this.#retired].map((built) => ({
      generation: built.gen.number,
      inFlight: built.inFlight(),
    }));
  }

  /** Closes the observers of all generations, because another process runs them now. */
  async closeObservers(): Promise<void> {
    const all = [...(this.#current ? [this.#current.built] : []), ...this.#retired];
    await Promise.all(all.map((built) => built.closeObservers()));
  }

  /** Resolves when the last exchange of all generations has ended. */
  async whenDrained(): Promise<void> {
    const all = [...(this.#current ? [this.#current.built] : []), ...this.#retired];
    const timeoutMs = this.#current?.config.shutdown.timeoutMs ?? 0;
    const restMs = Math.max(0, this.#drainedSince + timeoutMs - performance.now());
    const timer = setTimeout(() => this.#cancelBackground(), restMs).unref();
    await Promise.all(all.map((built) => built.retire()));
    clearTimeout(timer);
  }

  /** Cancels the requests without a client, which no closed connection ends. */
  #cancelBackground(): void {
    const cut = this.#services.inFlightRequests.cancelBackground();
    if (cut > 0)
      this.#services.log.warn({ cut }, "drain timeout reached, background requests canceled");
  }

  #ready(): { ready: boolean; state: string } {
    this.#readyzWasQueried = true;
    const { state } = this;
    return { ready: state === "ready", state };
  }
}

const socketLimitsOf = ({ bounds, writeTimeoutMs }: GatewayConfig) => ({
  ...bounds,
  stalledWindowMs: writeTimeoutMs,
});

const routesOf = (options: AppOptions) => async () =>
  (await import("../http/generation-app.ts")).createRoutes(options);
