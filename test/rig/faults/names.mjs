// Preloaded into the gateway (`node --import`): it resolves names that end in ".faults.test".
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";

const { lookup } = dns;
let asked = 0;

const ADDRESSES = {
  tls: () => "127.0.0.1",
  // A different address each time.
  flips: () => (asked++ % 2 === 0 ? "127.0.0.1" : "127.0.0.2"),
  // A cloud's metadata service: a name that was valid before may later resolve to it.
  rebound: () => "169.254.169.254",
};

dns.lookup = (host, options, done) => {
  const name = /^(\w+)\.faults\.test$/.exec(host)?.[1];
  if (name === undefined) return lookup(host, options, done);
  const answer = done ?? options;
  if (name === "silent") return undefined;
  const address = Object.hasOwn(ADDRESSES, name) ? ADDRESSES[name]() : undefined;
  if (address === undefined) {
    const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), {
      code: "ENOTFOUND",
      syscall: "getaddrinfo",
      hostname: host,
    });
    return void setImmediate(answer, error);
  }
  if (options.all) return void setImmediate(answer, null, [{ address, family: 4 }]);
  return void setImmediate(answer, null, address, 4);
};
syncBuiltinESMExports();
