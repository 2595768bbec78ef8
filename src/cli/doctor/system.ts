// Checks the machine: versions, limits, memory, clock, the disk of the state directory, and the
// permissions of its files.
import { existsSync } from "node:fs";
import { mkdtemp, open, readFile, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { formatBytes } from "../format/terminal.ts";
import {
  errorFinding,
  okFinding,
  noteFinding,
  warningFinding,
  type DoctorFinding,
  FREE_BYTES,
  FSYNC_MS,
  MIN_NODE,
  SKEW_MS,
} from "./finding.ts";

/** Whether a major version of Node.js gets long-term support. */
const isLts = (major: number) => major % 2 === 0;

export function checkVersions(version: string, node = process.versions): readonly DoctorFinding[] {
  const major = Number(node.node.split(".")[0]);
  const summary = `tollgate ${version} on Node ${node.node}, SQLite ${node["sqlite"] ?? "unknown"}, OpenSSL ${node.openssl}`;
  if (major < MIN_NODE)
    return [
      errorFinding("version/node", summary, `install Node ${MIN_NODE} or newer from nodejs.org`),
    ];
  if (!isLts(major))
    return [
      noteFinding(
        "version/node",
        `${summary}; odd versions of Node are supported for only six months`,
      ),
    ];
  return [okFinding("version/node", summary)];
}

/** File descriptors: two per request (client and provider), and some for the process itself. */
const DESCRIPTOR_NEEDS = { perRequest: 2, own: 256 };

export async function checkLimits({
  bounds,
  overload,
}: GatewayConfig): Promise<readonly DoctorFinding[]> {
  const text = await readFile("/proc/self/limits", "utf8").catch(() => undefined);
  if (text === undefined) return [noteFinding("limits/files", "the open file limit is unknown")];
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1];
  const most = soft === "unlimited" ? Infinity : Number(soft);
  const wanted =
    Math.min(bounds.connections, overload.maxConcurrent) * DESCRIPTOR_NEEDS.perRequest +
    DESCRIPTOR_NEEDS.own;
  return [
    most >= wanted
      ? okFinding("limits/files", `open file limit: ${soft}`)
      : warningFinding(
          "limits/files",
          `the open file limit is ${soft}, and up to ${wanted} may be needed (bounds.connections, overload.max_concurrent)`,
          "raise it: LimitNOFILE=65536 in the unit, --ulimit nofile=65536 for a container, " +
            "ulimit -n in a shell; or lower those settings",
        ),
  ];
}

const FSYNC_WRITES = 16;

/** Checks the disk of the state directory, or of its nearest existing parent. */
export async function checkDisk(stateDir: string): Promise<readonly DoctorFinding[]> {
  let folder = stateDir;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  const { bavail, bsize, type } = await statfs(folder);
  return [
    checkFreeSpace(bavail * bsize, stateDir),
    await measureFsync(folder),
    ...checkNetworkFileSystem(type, stateDir),
  ];
}

export function checkFreeSpace(free: number, stateDir: string): DoctorFinding {
  const summary = `${formatBytes(free)} free for ${stateDir}`;
  if (free < FREE_BYTES.error)
    return errorFinding(
      "disk/free",
      summary,
      "free disk space: a full disk stops all calls, because each call is recorded first",
    );
  if (free < FREE_BYTES.warning)
    return warningFinding(
      "disk/free",
      summary,
      "free disk space, or prune old rows: ledger: { retention: 400d }",
    );
  return okFinding("disk/free", summary);
}

/** Measures the duration of an fsync, because each commit of the ledger waits for one. */
async function measureFsync(folder: string): Promise<DoctorFinding> {
  let place: string | undefined;
  try {
    place = await mkdtemp(join(folder, ".doctor-"));
    const file = await open(join(place, "fsync"), "w");
    const times: number[] = [];
    const bytes = Buffer.alloc(4_096, 1);
    for (let i = 0; i < FSYNC_WRITES; i++) {
      const began = performance.now();
      await file.write(bytes);
      await file.sync();
      times.push(performance.now() - began);
    }
    await file.close();
    return checkFsync(times.sort((a, b) => a - b)[FSYNC_WRITES / 2]!);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    return errorFinding(
      "disk/write",
      `cannot write to ${folder}: ${code ?? message}`,
      "make this user the owner of the directory (chown), or set another state_dir",
    );
  } finally {
    if (place !== undefined) await rm(place, { recursive: true, force: true });
  }
}

export function checkFsync(median: number): DoctorFinding {
  const summary = `a write is durable after ${median.toFixed(1)} ms (fsync, median of ${FSYNC_WRITES})`;
  const todo = "move state_dir to a local disk: each request waits twice for a durable write";
  if (median > FSYNC_MS.error) return errorFinding("disk/fsync", summary, todo);
  return median > FSYNC_MS.warning
    ? warningFinding("disk/fsync", summary, todo)
    : okFinding("disk/fsync", summary);
}

/**
 * File system types of `statfs` that are network file systems. SQLite's write-ahead log needs
 * shared memory, which they do not support.
 */
const NETWORK_FILE_SYSTEMS = new Map([
  [0x6969, "NFS"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB"],
  [0x65735546, "FUSE"],
]);
const checkNetworkFileSystem = (type: number, stateDir: string): readonly DoctorFinding[] => {
  const name = NETWORK_FILE_SYSTEMS.get(type);
  if (name === undefined) return [];
  return [
    warningFinding(
      "disk/network",
      `${stateDir} is on ${name}`,
      "move state_dir to a local disk, which SQLite requires",
    ),
  ];
};

/** Checks the permissions of gateway.yaml and of the files that it names. */
export async function checkPermissions(config: GatewayConfig): Promise<readonly DoctorFinding[]> {
  if (process.platform === "win32") return [];
  const found: DoctorFinding[] = [];
  const keys = config.listen.flatMap(({ tls }) => (tls ? [tls.key] : []));
  if (config.admin?.tls) keys.push(config.admin.tls.key);
  const read = new Set(config.sources.filter((file) => !/\.(ya?ml|[cm]?[jt]s|json)$/.test(file)));
  for (const file of new Set([...config.sources, ...keys])) {
    const at = await stat(file).catch(() => undefined);
    if (!at) continue;
    const secret = read.has(file) || keys.includes(file);
    if ((at.mode & 0o022) !== 0)
      found.push(
        warningFinding(
          "permissions/written",
          `other users can write ${file}`,
          `run chmod go-w ${file}: the file controls where keys are sent`,
        ),
      );
    else if (secret && (at.mode & 0o004) !== 0)
      found.push(
        warningFinding("permissions/read", `every user can read ${file}`, `chmod 600 ${file}`),
      );
  }
  const folder = await stat(config.stateDir).catch(() => undefined);
  if (folder && (folder.mode & 0o077) !== 0)
    found.push(
      warningFinding(
        "permissions/state",
        `other users can enter ${config.stateDir} and use its control socket as owner`,
        `chmod 700 ${config.stateDir}`,
      ),
    );
  if (folder && process.getuid && folder.uid !== process.getuid())
    found.push(
      noteFinding(
        "permissions/owner",
        `${config.stateDir} belongs to another user; these file checks apply to the current user`,
        "run tollgate doctor as the user that runs the gateway",
      ),
    );
  if (process.getuid?.() === 0)
    found.push(
      noteFinding(
        "permissions/root",
        "the current user is root",
        "run the gateway as a dedicated user; deploy/systemd contains a unit",
      ),
    );
  return found.length > 0
    ? found
    : [
        okFinding(
          "permissions",
          "only this user can access gateway.yaml, secrets, and the state directory",
        ),
      ];
}

/**
 * Checks the clock by the median of the measured differences.
 * @param differences Differences in milliseconds: the remote clock minus this machine's.
 */
export function checkClock(differences: readonly number[]): readonly DoctorFinding[] {
  const year = new Date(wallClock()).getUTCFullYear();
  const todo = "synchronize the clock: timedatectl set-ntp true";
  if (differences.length === 0)
    return year < 2026
      ? [errorFinding("clock", `the clock shows the year ${year}`, todo)]
      : [noteFinding("clock", "the clock was not compared, because no provider was called")];
  const skew = [...differences].sort((a, b) => a - b)[Math.floor(differences.length / 2)]!;
  const text = `the clock is ${Math.abs(Math.round(skew / 1_000))} s ${skew > 0 ? "behind" : "ahead of"} the providers' clocks`;
  if (Math.abs(skew) > SKEW_MS.error) return [errorFinding("clock", text, todo)];
  if (Math.abs(skew) > SKEW_MS.warning) return [warningFinding("clock", text, todo)];
  return [okFinding("clock", "the clock matches the providers' clocks")];
}
