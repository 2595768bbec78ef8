// What a gateway does for its operators, and for the state folder, while that is its own: the doors by which commands come in, the watch over
// gateway.yaml, and old rows that go. A gateway that is replaced while it serves closes it first.
import { Scope } from "../lib/scope.ts";
import type { Refresh } from "../catalogue/refresh.ts";
import { openDoors } from "./admin/doors.ts";
import type { Changes } from "./changes.ts";
import { commandsOf } from "./control/commands.ts";
import type { GenerationSlot } from "./generation/slot.ts";
import type { Listening } from "./http/listener.ts";
import { ADMIN_MS } from "./lame-duck.ts";
import type { GatewayOptions } from "./options.ts";
import { watchConfig } from "./reload/watch.ts";
import type { Services } from "./services/services.ts";
import type { Gateway } from "./types.ts";
import type { WorkerPool } from "./workers/pool.ts";

interface OfficeOf {
  readonly gateway: Gateway;
  readonly options: GatewayOptions;
  readonly services: Services;
  readonly changes: Changes;
  readonly workers: () => WorkerPool | undefined;
  readonly refresh: Refresh;
  readonly stage: GenerationSlot;
}

export class Office implements AsyncDisposable {
  readonly #of: OfficeOf;
  #scope = new Scope();
  #admin: Listening | undefined;

  constructor(of: OfficeOf) {
    this.#of = of;
  }

  get admin(): Listening | undefined {
    return this.#admin;
  }

  /** The doors, before any port of clients. `fd`: the admin listener's, when it was open before. */
  async open(fd?: number): Promise<void> {
    const { services, stage, options, ...more } = this.#of;
    this.#scope = new Scope();
    const gate = commandsOf({ ...more, services, options, current: () => stage.current });
    this.#admin = await openDoors(gate, services, { stage, scope: this.#scope, fd });
  }

  /** What is done now and then. */
  keep(): void {
    const { services, stage, options, gateway } = this.#of;
    stage.retain(this.#scope);
    if (options.watch === false || options.file === undefined) return;
    const reload = () => gateway.reload("file");
    this.#scope.own(watchConfig(() => stage.current.loaded, reload, services.log));
  }

  /** The admin listener alone: until then it could be asked how far an end is. */
  async closeAdmin(graceMs = ADMIN_MS): Promise<void> {
    await this.#admin?.close(graceMs);
    this.#admin = undefined;
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
