// Service manager units: they are printed with this installation's paths. Also tests the messages
// between a service and its manager.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import {
  inheritedSockets,
  ServiceManager,
  watchdogMs,
} from "../../src/cli/support/service-manager.ts";
import { createTestFolder, runCliInProcess } from "../kit/process/command-line.ts";
import { root } from "../kit/process/program.ts";

describe("tollgate service print", () => {
  it("systemd: uses the current Node, program, and file, and quotes special characters", async () => {
    await using here = await createTestFolder({ "a b%.yaml": "" });
    const { out, code } = await runCliInProcess([
      "service",
      "print",
      "systemd",
      "-c",
      join(here.path, "a b%.yaml"),
    ]);
    expect(code).toBe(0);
    expect(out).toContain(`ExecStart=${process.execPath} `);
    expect(out).toContain(`serve -c "${here.path}/a b%%.yaml" --state-dir /var/lib/tollgate\n`);
    expect(out.match(/^ExecStart=/gm)).toHaveLength(1);
  });

  it("allows writes to another state directory, which systemd does not create", async () => {
    const { out } = await runCliInProcess([
      "service",
      "print",
      "systemd",
      "-c",
      "/etc/tollgate/g.yaml",
      "--state-dir",
      "/srv/t",
    ]);
    expect(out).toContain("ReadWritePaths=/srv/t\n");
    expect(out).not.toContain("StateDirectory=");
    expect(out).toContain("--state-dir /srv/t\n");
  });

  it("prints socket units, and a launchd file", async () => {
    expect((await runCliInProcess(["service", "print", "systemd", "--socket"])).out).toBe(
      readFileSync(join(root, "deploy/systemd/tollgate.socket"), "utf8"),
    );
    const { out } = await runCliInProcess(["service", "print", "launchd", "-c", "/x/<&>.yaml"]);
    expect(out).toContain("<string>/x/&lt;&amp;&gt;.yaml</string>");
    if (spawnSync("xmllint", ["--version"]).status === 0)
      expect(spawnSync("xmllint", ["--noout", "--nonet", "-"], { input: out }).status).toBe(0);
  });

  it("systemd-analyze finds no error and little exposure", async () => {
    if (spawnSync("systemd-analyze", ["--version"]).status !== 0) return;
    const units = join(root, "deploy/systemd/tollgate.service");
    const { stdout } = spawnSync(
      "systemd-analyze",
      ["security", "--offline=true", "--no-pager", units],
      { encoding: "utf8" },
    );
    expect(Number(/exposure level for \S+: (\d+\.\d+)/.exec(stdout)?.[1])).toBeLessThanOrEqual(1.5);
  });
});

describe("sockets from the service manager", () => {
  it("belong to this process only, have names, and are not inherited", () => {
    const env = { LISTEN_PID: "7", LISTEN_FDS: "3", LISTEN_FDNAMES: "clients:admin:more" };
    expect(inheritedSockets({ ...env }, 8)).toBeUndefined();
    const seen: Record<string, string | undefined> = { ...env };
    expect(inheritedSockets(seen, 7)).toEqual({ clients: [3, 5], admin: 4 });
    expect(seen).toEqual({});
    expect(inheritedSockets({ LISTEN_PID: "7", LISTEN_FDS: "0" }, 7)).toBeUndefined();
    expect(() => inheritedSockets({ ...env, LISTEN_FDNAMES: "admin:admin:x" }, 7)).toThrow(
      "named admin",
    );
  });
});

describe("notifications to the service manager", () => {
  const manager = (env: Record<string, string>, alive: () => Promise<void> = async () => {}) => {
    const told: string[] = [];
    const failed = vi.fn();
    const made = ServiceManager.create({
      env,
      checkAlive: alive,
      onError: failed,
      status: async () => "serving",
      notify: async (words) => void told.push(words.join(" ")),
    });
    return { made, told, failed };
  };

  it("sends nothing without a notify socket", () => expect(manager({}).made).toBeUndefined());

  it("reports readiness, the watchdog while the ledger responds, and the shutdown", async () => {
    vi.useFakeTimers();
    try {
      let answers = true;
      const alive = async () =>
        answers ? undefined : Promise.reject(new Error("The ledger is down."));
      const { made, told } = manager({ NOTIFY_SOCKET: "/x", WATCHDOG_USEC: "20000000" }, alive);
      await made!.notifyReady();
      // The first watchdog notification is from the new process. Half of the interval may have
      // passed since the previous one's.
      expect(told).toEqual([`READY=1 MAINPID=${process.pid} STATUS=serving WATCHDOG=1`]);
      await vi.advanceTimersByTimeAsync(10_000);
      expect(told.slice(1)).toEqual(["WATCHDOG=1 STATUS=serving"]);
      answers = false;
      await vi.advanceTimersByTimeAsync(40_000);
      expect(told).toHaveLength(2);
      answers = true;
      await made!.notifyStopping();
      await vi.advanceTimersByTimeAsync(40_000);
      expect(told.slice(2)).toEqual(["STOPPING=1 STATUS=stopping"]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("reports the new main process before the old one ends, and nothing after that", async () => {
    vi.useFakeTimers();
    try {
      const { made, told } = manager({ NOTIFY_SOCKET: "/x", WATCHDOG_USEC: "20000000" });
      await made!.notifyReady();
      await made!.notifyNewMainPid(4711);
      await vi.advanceTimersByTimeAsync(40_000);
      expect(told.slice(1)).toEqual(["MAINPID=4711"]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("logs a failed notification once, and continues", async () => {
    const failed = vi.fn();
    const made = new ServiceManager({
      env: {},
      onError: failed,
      checkAlive: async () => {},
      status: async () => "",
      notify: async () => Promise.reject(new Error("no systemd-notify")),
    });
    await made.notifyReady();
    await made.notifyReloading();
    expect(failed).toHaveBeenCalledTimes(1);
  });

  it("ignores the watchdog of another process", () => {
    expect(watchdogMs({ WATCHDOG_USEC: "1000", WATCHDOG_PID: "8" }, 7)).toBeUndefined();
    expect(watchdogMs({ WATCHDOG_USEC: "1000", WATCHDOG_PID: "7" }, 7)).toBe(1);
    expect(watchdogMs({}, 7)).toBeUndefined();
  });
});
