// The control plane of a gateway that owns its state directory: the interfaces for admin commands,
// the watcher of gateway.yaml, and ledger retention. During a hot restart, the old gateway closes
// it first.
import { LifetimeScope } from "../lib/lifetime-scope.ts";
import type { ListRefresher } from "../catalog/list-refresher.ts";
import { openEntrypoints } from "../admin/http/entrypoints.ts";
import type { ChangeBroadcast } from "../runtime/change-broadcast.ts";
import {
  createBudgetWatch,
  createGatewayDispatcher,
  type GatewayCommandsOptions,
} from "../admin/commands/gateway-commands.ts";
import type { GenerationSlot } from "../runtime/generation/generation-slot.ts";
import type { ListenerHandle } from "../runtime/http/listener.ts";
import { ADMIN_CLOSE_GRACE_MS } from "./lame-duck.ts";
import type { GatewayOptions } from "./gateway-options.ts";
import { watchConfig } from "../runtime/reload/config-watcher.ts";
import type { Services } from "../runtime/services.ts";
import type { PriceFeed } from "../runtime/services/price-feed.ts";
import type { Gateway } from "../runtime/gateway-api.ts";
import type { WorkerPool } from "../runtime/workers/worker-pool.ts";

const FORECAST_EVERY_MS = 3_600_000;

interface ControlPlaneOptions {
  readonly gateway: Gateway;
  readonly options: GatewayOptions;
  readonly services: Services;
  readonly changeBroadcast: ChangeBroadcast;
  readonly workerPool: () => WorkerPool | undefined;
  readonly listRefresher: ListRefresher;
  readonly priceFeed: PriceFeed;
  readonly generations: GenerationSlot;
}

export class ControlPlane implements AsyncDisposable {
  readonly #options: ControlPlaneOptions;
  #scope = new LifetimeScope();
  #adminListener: ListenerHandle | undefined;

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
  }

  get adminListener(): ListenerHandle | undefined {
    return this.#adminListener;
  }

  /**
   * Opens the interfaces, before any client port. `fd`: descriptor of the admin listener, if it was
   * open before.
   */
  async open(fd?: number): Promise<void> {
    const { services, generations } = this.#options;
    this.#scope = new LifetimeScope();
    const dispatcher = createGatewayDispatcher(this.#commandOptions());
    this.#adminListener = await openEntrypoints(dispatcher, services, {
      stage: generations,
      scope: this.#scope,
      fd,
    });
  }

  #commandOptions(): GatewayCommandsOptions {
    const { generations, ...more } = this.#options;
    return {
      ...more,
      currentGeneration: () => generations.current,
      openSockets: () => generations.sockets,
    };
  }

  /** Starts retention, the forecast of budgets, and the config watcher. */
  startBackgroundTasks(): void {
    const { services, generations, options, gateway } = this.#options;
    generations.startRetention(this.#scope);
    const watch = createBudgetWatch(this.#commandOptions());
    this.#scope.every(
      FORECAST_EVERY_MS,
      async () => {
        for (const event of await watch.check()) services.observerSink.reportEvent(event);
      },
      (err) => services.log.error({ err }, "budget forecast failed"),
    );
    if (options.watchesConfig === false || options.configFile === undefined) return;
    const reload = () => gateway.reload("file");
    this.#scope.own(watchConfig(() => generations.current.loaded, reload, services.log));
  }

  /**
   * Closes only the admin listener. Until then, the listener reports the progress of the shutdown.
   */
  async closeAdmin(graceMs = ADMIN_CLOSE_GRACE_MS): Promise<void> {
    await this.#adminListener?.close(graceMs);
    this.#adminListener = undefined;
  }

  async close(): Promise<void> {
    await this.closeAdmin();
    await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.closeAdmin(0);
    await this.#scope[Symbol.asyncDispose]();
  }
}
