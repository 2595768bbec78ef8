// An npm registry on this machine: versions of Tollgate from their tarballs, and dependencies from
// the checkout's node_modules. So `npm install tollgate` works as for a new user, without access to
// other hosts.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { root } from "../../../kit/process/program.ts";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}
interface Version {
  readonly manifest: Manifest;
  tarball(): Buffer;
}

const MOST_BYTES = 256 * 1024 * 1024;

function tar(args: readonly string[]): Buffer {
  const { status, stdout, stderr } = spawnSync("tar", args, { maxBuffer: MOST_BYTES });
  if (status !== 0) throw new Error(`tar ${args.join(" ")}: ${stderr}`);
  return stdout;
}

export const manifestOf = (tarball: string): Manifest =>
  JSON.parse(tar(["-xzOf", tarball, "package/package.json"]).toString()) as Manifest;

/** The nearest one upwards, as Node resolves it. */
function folderOf(name: string, from: string): string | undefined {
  const folder = join(from, "node_modules", name);
  if (existsSync(join(folder, "package.json"))) return folder;
  return from === root ? undefined : folderOf(name, dirname(from));
}

export interface Registry extends AsyncDisposable {
  readonly url: string;
  publish(tarball: string): void;
}

export async function registry(): Promise<Registry> {
  const packages = new Map<string, Map<string, Version>>();
  let latest = "";
  const versionsOf = (name: string) => {
    const there = packages.get(name) ?? new Map<string, Version>();
    packages.set(name, there);
    return there;
  };
  const dependenciesOf = ({ dependencies = {} }: Manifest, from: string) => {
    for (const name of Object.keys(dependencies)) {
      const folder = folderOf(name, from);
      if (folder === undefined) throw new Error(`${name} is not in node_modules`);
      const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
      const versions = versionsOf(name);
      if (versions.has(manifest.version)) continue;
      versions.set(manifest.version, { manifest, tarball: () => packed(folder) });
      dependenciesOf(manifest, folder);
    }
  };
  const server = createServer((req, res) => {
    const [, name = "", version] =
      /^\/((?:@[^/]+\/)?[^/]+)(?:\/-\/(.+)\.tgz)?$/.exec(decodeURIComponent(req.url ?? "")) ?? [];
    const versions = packages.get(name);
    const one = version === undefined ? undefined : versions?.get(version);
    if (!versions || (version !== undefined && !one))
      return void res.writeHead(404, { "content-type": "application/json" }).end("{}");
    if (one) return void res.end(one.tarball());
    res.writeHead(200, { "content-type": "application/json" });
    res.end(
      JSON.stringify({
        name,
        "dist-tags": { latest: name === "tollgate" ? latest : [...versions.keys()].at(-1) },
        versions: Object.fromEntries(
          [...versions].map(([is, { manifest, tarball }]) => [
            is,
            {
              ...manifest,
              dist: {
                tarball: `${url}/${name}/-/${is}.tgz`,
                integrity: `sha512-${createHash("sha512").update(tarball()).digest("base64")}`,
              },
            },
          ]),
        ),
      }),
    );
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    publish(tarball) {
      const manifest = manifestOf(tarball);
      latest = manifest.version;
      const bytes = readFileSync(tarball);
      versionsOf("tollgate").set(latest, { manifest, tarball: () => bytes });
      dependenciesOf(manifest, root);
    },
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

const made = new Map<string, Buffer>();

function packed(folder: string): Buffer {
  const there = made.get(folder);
  if (there) return there;
  const bytes = tar([
    "-czf",
    "-",
    "-C",
    folder,
    "--exclude=./node_modules",
    "--transform=s,^\\.,package,",
    ".",
  ]);
  made.set(folder, bytes);
  return bytes;
}
