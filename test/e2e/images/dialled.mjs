// Preloaded into a gateway. Records every address that it dials, allows the permitted ones, and
// resolves names as configured.
//   DIALLED  the file
//   REACHED  ports of 127.0.0.1 that may be reached
//   NAMES    name → addresses, one after another
import dns from "node:dns";
import { appendFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";

const { DIALLED, REACHED = "", NAMES = "{}" } = process.env;
const reached = new Set(REACHED.split(","));
const names = new Map(Object.entries(JSON.parse(NAMES)));
const turns = new Map();

const { lookup } = dns;
dns.lookup = (name, options, done) => {
  const answers = names.get(name);
  if (!answers) return lookup(name, options, done);
  const turn = turns.get(name) ?? 0;
  turns.set(name, turn + 1);
  const answer = answers[Math.min(turn, answers.length - 1)];
  const all = answer.map((address) => ({ address, family: net.isIP(address) }));
  process.nextTick(() =>
    options.all ? done(null, all) : done(null, all[0].address, all[0].family),
  );
  return {};
};
syncBuiltinESMExports();

const ECONNREFUSED = -111;
const { connect } = net.Socket.prototype;
net.Socket.prototype.connect = function (...args) {
  this.on("connectionAttempt", (address, port) => {
    if (port === undefined) return;
    appendFileSync(DIALLED, `${address} ${port}\n`);
    if (address === "127.0.0.1" && reached.has(String(port))) return;
    // Nothing is sent from the test machine.
    this._handle.connect = this._handle.connect6 = () => ECONNREFUSED;
  });
  return connect.apply(this, args);
};
