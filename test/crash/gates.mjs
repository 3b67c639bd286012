// Gates: a step waits at one until the test opens it.
const gates = new Map();

function gateOf(name) {
  if (!gates.has(name)) {
    let open;
    const opened = new Promise((resolve) => {
      open = resolve;
    });
    gates.set(name, { open, opened });
  }
  return gates.get(name);
}

export const passGate = (name) => gateOf(name).opened;
export const openGate = (name) => gateOf(name).open();
