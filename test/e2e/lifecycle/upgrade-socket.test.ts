// Between the two gateways of an upgrade, the control socket is briefly missing: commands in that
// time wait, and a health check succeeds.
import { expect, it } from "vitest";
import type { GatewayStatus } from "../../../src/runtime/gateway-api.ts";
import { getFault } from "../../../src/model/error.ts";
import { callControl } from "../../../src/admin/socket/control-client.ts";
import { waitForExit } from "../../kit/process/processes.ts";
import { createTestFolder } from "../../kit/process/command-line.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

it.each([1, 2])(
  "no request finds the gateway missing during a restart: workers: %i",
  async (workers) => {
    await using gateway = await startDaemon({
      yaml: `workers: ${workers}\nshutdown: { timeout: 1s }\nproviders: { demo: { use: demo } }\n`,
    });
    let next = gateway.pid;
    // The next process is gone before its folder is removed.
    await using _ = {
      [Symbol.asyncDispose]: async () => {
        if (next === gateway.pid) return;
        process.kill(next, "SIGKILL");
        await waitForExit(next);
      },
    };
    process.kill(gateway.pid, "SIGUSR2");
    let ended = 0;
    await until(async () => {
      const status = (await gateway.ask("status").catch((error: unknown) => {
        // A command during the exit is repeated, and does not report that no gateway runs.
        if (getFault(error)?.code !== "gateway_ended") throw error;
        ended++;
      })) as unknown as GatewayStatus | undefined;
      next = status?.pid ?? next;
      if (status && next !== gateway.pid && status.state === "starting")
        expect(status.oldProcess?.pid).toBe(gateway.pid);
      return next !== gateway.pid;
    });
    expect(ended).toBeLessThan(5);
  },
);

it("ignores the note of a dead process", async () => {
  await using here = await createTestFolder({ "control.handoff": "4194305\n" });
  await expect(callControl(here.path, "status")).rejects.toThrow("No gateway is running");
});
