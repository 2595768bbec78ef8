// What a gateway does for its operators, and for the state folder, while that is its own: the doors by which commands come in, the watch over
// gateway.yaml, and old rows that go. A gateway that is replaced while it serves closes it first.
import { LifetimeScope } from "../lib/scope.ts";
import type { ListRefresher } from "../catalogue/refresh.ts";
import { openEntrypoints } from "./admin/doors.ts";
import type { ChangeBroadcast } from "./changes.ts";
import { createGatewayDispatcher } from "./control/commands.ts";
import type { GenerationSlot } from "./generation/slot.ts";
import type { ListenerHandle } from "./http/listener.ts";
import { ADMIN_CLOSE_GRACE_MS } from "./lame-duck.ts";
import type { GatewayOptions } from "./options.ts";
import { watchConfig } from "./reload/watch.ts";
import type { Services } from "./services/services.ts";
import type { Gateway } from "./types.ts";
import type { WorkerPool } from "./workers/pool.ts";

interface ControlPlaneOptions {
  readonly gateway: Gateway;
  readonly options: GatewayOptions;
  readonly services: Services;
  readonly changeBroadcast: ChangeBroadcast;
  readonly workerPool: () => WorkerPool | undefined;
  readonly listRefresher: ListRefresher;
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

  /** The doors, before any port of clients. `fd`: the admin listener's, when it was open before. */
  async open(fd?: number): Promise<void> {
    const { services, generations, options, ...more } = this.#options;
    this.#scope = new LifetimeScope();
    const dispatcher = createGatewayDispatcher({
      ...more,
      services,
      options,
      currentGeneration: () => generations.current,
    });
    this.#adminListener = await openEntrypoints(dispatcher, services, {
      stage: generations,
      scope: this.#scope,
      fd,
    });
  }

  /** What is done now and then. */
  startBackgroundTasks(): void {
    const { services, generations, options, gateway } = this.#options;
    generations.startRetention(this.#scope);
    if (options.watchesConfig === false || options.configFile === undefined) return;
    const reload = () => gateway.reload("file");
    this.#scope.own(watchConfig(() => generations.current.loaded, reload, services.log));
  }

  /** The admin listener alone: until then it could be asked how far an end is. */
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
