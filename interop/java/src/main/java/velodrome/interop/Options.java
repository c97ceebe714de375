package velodrome.interop;

import java.util.Set;

/** The command line: `serve|fetch --version V [--tls] [--cert FILE --key FILE] [--port P] [SCENARIO]`. */
final class Options {
    String verb = "";
    String version = "";
    String cert;
    String key;
    String scenario;
    int port;
    boolean tls;

    /** Reads `arguments` for a peer that speaks `versions`; exits with 2 if they are none. */
    static Options parse(String[] arguments, Set<String> versions) {
        Options options = new Options();
        try {
            options.read(arguments);
        } catch (ArrayIndexOutOfBoundsException | NumberFormatException e) {
            options.verb = "";
        }
        boolean serve = options.verb.equals("serve") && (!options.tls || options.cert != null && options.key != null);
        boolean fetch = options.verb.equals("fetch") && options.scenario != null && options.port > 0;
        if (!versions.contains(options.version) || !serve && !fetch) {
            System.err.println("usage: serve --version V [--tls --cert FILE --key FILE]\n"
                + "       fetch --version V [--tls] --port PORT SCENARIO\n"
                + "V is one of " + versions);
            System.exit(2);
        }
        return options;
    }

    private void read(String[] words) {
        verb = words[0];
        for (int at = 1; at < words.length; at++) {
            switch (words[at]) {
                case "--tls" -> tls = true;
                case "--version" -> version = words[++at];
                case "--cert" -> cert = words[++at];
                case "--key" -> key = words[++at];
                case "--port" -> port = Integer.parseInt(words[++at]);
                default -> scenario = words[at];
            }
        }
    }

    String protocol() {
        return "spdy/" + version;
    }
}
