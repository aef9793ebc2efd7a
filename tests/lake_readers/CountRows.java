import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.min;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Prints of each partition of a table: number, rows, first and last offset, bytes and hash of values. */
public class CountRows {
  public static void main(String[] arguments) {
    SparkSession spark =
        SparkSession.builder()
            .master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.log.level", "ERROR")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config(
                "spark.sql.catalog.spark_catalog",
                "org.apache.spark.sql.delta.catalog.DeltaCatalog")
            .getOrCreate();
    try {
      for (Row row :
          spark
              .read()
              .format("delta")
              .load(arguments[0])
              .where("gap_to is null")
              .groupBy("partition")
              .agg(
                  count(lit(1)),
                  min(col("offset")),
                  max(col("offset")),
                  expr("sum(crc32(value))"))
              .orderBy("partition")
              .collectAsList()) {
        System.out.println("found " + row.mkString(" "));
      }
    } finally {
      spark.stop();
    }
  }
}
