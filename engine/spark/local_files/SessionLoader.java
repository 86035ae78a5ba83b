package headrace;

import java.io.IOException;
import java.net.URL;
import java.util.Collections;
import java.util.Enumeration;

/**
 * The class loader in which Spark looks for extensions when a session is made, without those of its machine learning.
 *
 * They are two functions of Spark Connect's, and to register them takes half a second of reflection. All else is the
 * parent's: classes, other resources, and extensions in other jars.
 */
public final class SessionLoader extends ClassLoader {
    private static final String EXTENSIONS = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider";
    private static final String MACHINE_LEARNING = "/spark-mllib_";

    public SessionLoader(ClassLoader parent) {
        super(parent);
    }

    @Override
    public Enumeration<URL> getResources(String name) throws IOException {
        Enumeration<URL> found = super.getResources(name);
        if (!name.equals(EXTENSIONS)) {
            return found;
        }
        return Collections.enumeration(
            Collections.list(found).stream().filter(url -> !url.getPath().contains(MACHINE_LEARNING)).toList());
    }
}
