// A new user's first hour: docs/tutorials/first-hour.md, typed as written, from `npm install` to a
// second gateway, in its own network and home directory. The current version is this tree with its
// own number, or `--from <commit>`, and the next one is this tree with a higher number. `--broken`
// runs it with defects, each of which must be found.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanClone, linkDependencies } from "../../kit/process/clean-clone.ts";
import { root } from "../../kit/process/program.ts";
import { page, stepsOf } from "./tutorial/page.ts";
import type { Played } from "./tutorial/run-page.ts";
import type { Rig, RigResult } from "../rig.ts";

function must(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr || stdout}`);
  return stdout;
}

const pack = (folder: string, to: string): string =>
  join(
    to,
    must("npm", ["pack", "--silent", "--pack-destination", to], folder).trim().split("\n").at(-1)!,
  );

/** The same files under another number. */
function renumbered(tarball: string, version: string, to: string): string {
  const place = mkdtempSync(join(to, "next-"));
  must("tar", ["-xzf", tarball, "-C", place], to);
  const file = join(place, "package/package.json");
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), version }));
  const next = join(to, `tollgate-${version}.tgz`);
  must("tar", ["-czf", next, "-C", place, "package"], to);
  return next;
}

/** The last version and the next. `from`: a commit, or nothing, which is this tree. */
function tarballs(folder: string, from = ""): readonly [string, string] {
  const clone = join(folder, "clone");
  cleanClone(clone);
  linkDependencies(clone);
  const made = pack(clone, folder);
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    version: string;
  };
  const [major, minor, patch] = version.split(".").map(Number) as [number, number, number];
  const next = renumbered(made, `${major}.${minor}.${patch + 1}`, folder);
  if (from === "") return [made, next];
  const before = join(folder, "before");
  mkdirSync(before);
  must("bash", ["-c", `git archive "${from}" | tar -x -C "${before}"`], root);
  linkDependencies(before);
  const to = join(folder, "last");
  mkdirSync(to);
  return [pack(before, to), next];
}

/** A network of its own has free ports, and nothing in it reaches out. */
const apart = spawnSync("unshare", ["-rn", "ip", "link", "set", "lo", "up"]).status === 0;

function played(text: string, made: readonly [string, string]): Promise<Played> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-hour-"));
  return inside({ folder, page: text, tarballs: made }).finally(() =>
    rmSync(folder, { recursive: true, force: true }),
  );
}

/** What a newcomer must not meet, and by which words the checker tells it. */
const BROKEN = [
  ['"max_tokens": 1000', '"max_tokens": 17', "it is not refused"],
  ["backup monday.tar", "backup monday.tar; chmod 644 monday.tar", "others may read it"],
  [
    "npx tollgate hot-restart",
    `kill -9 $(npx tollgate status --json | grep -om1 '"pid": *[0-9]*' | grep -o '[0-9]*')`,
    "streams were cut",
  ],
] as const;

const brokenPage = () =>
  BROKEN.reduce((text, [is, instead]) => text.replace(is, () => instead), page());

async function hour(
  from: string,
  broken: boolean,
  say: (line: string) => void,
): Promise<RigResult> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-packed-"));
  try {
    const began = performance.now();
    const made = tarballs(folder, from);
    say(`${seconds((performance.now() - began) / 1000)}  packed`);
    if (!apart)
      say("no network of its own is to be had: ports 8787, 8788, 9787, 9788 have to be free");
    const text = broken ? brokenPage() : page();
    const { steps, wrong: found, streams } = await played(text, made);
    for (const { name, seconds: took, lines } of steps)
      say(`${seconds(took)}  ${name.padEnd(24)} ${lines} line${lines === 1 ? "" : "s"}`);
    const unseen = BROKEN.filter(([, , words]) => !found.some((one) => one.includes(words)));
    const total = steps.reduce((sum, step) => sum + step.seconds, 0);
    return {
      wrong: broken ? unseen.map(([, instead]) => `not seen: ${instead}`) : found,
      counts: {
        steps: `${steps.length}/${stepsOf(text).length}`,
        seconds: total.toFixed(1),
        streams: `${streams.over}/${streams.asked}`,
        last: from || "this-tree",
        ...(broken && { seen: `${BROKEN.length - unseen.length}/${BROKEN.length}` }),
      },
      seed: 0,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const seconds = (of: number) => `${of.toFixed(1).padStart(6)} s`;

function inside(given: object): Promise<Played> {
  const program = join(root, "test/rig/package/tutorial/run-page.ts");
  const words = [process.execPath, "--conditions=tollgate-source", program, JSON.stringify(given)];
  const [command, ...args] = apart
    ? ["unshare", "-rn", "bash", "-c", 'ip link set lo up && exec "$@"', "bash", ...words]
    : words;
  const child = spawn(command!, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      try {
        resolve(JSON.parse(text) as Played);
      } catch {
        reject(new Error(`it ended with ${code}: ${text}`));
      }
    });
  });
}

export const rig: Rig = {
  options: { from: "", broken: false },
  run: ({ from = "", broken }, say) => hour(from, broken === "true", say),
};
