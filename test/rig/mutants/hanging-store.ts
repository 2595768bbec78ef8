// The memory store, which does not respond while a file named `hang` exists in its folder. When the
// file is removed, it executes its commands in order.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defineStore, type Store } from "tollgate/plugin";
import memory from "../../../plugins/stores/memory.ts";

export default defineStore({
  api: 1,
  name: "hanging",
  summary: "Says nothing while it is told not to",
  async setup(_options, ctx) {
    const store = (await memory.setup({ keep: 10_000 }, ctx)) as Store;
    const file = join(ctx.stateDir(), "hang");
    const open = async () => {
      while (existsSync(file)) await sleep(10);
    };
    const after =
      <A extends unknown[], T>(method: (...args: A) => Promise<T>) =>
      (...args: A) =>
        open().then(() => method.apply(store, args));
    return { ...store, apply: after(store.apply), findKey: after(store.findKey) };
  },
});
